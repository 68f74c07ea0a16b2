# SPDX-License-Identifier: Apache-2.0
"""Prefilling a private prompt after a prefix, layer by layer.

The prompt is the action's own instruction or the seed of a text request.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..attention import MaskKind, Span
from ..kv.context import Context
from ..model_runner import ModelRunner
from ..scheduling.work import Rank, UnitKey, UnitKind


class PromptWork:
    """From prompt tokens to their K/V in the context's own pages, causal after the prefix.

    :param kind: what its layers count as.
    :param complete: called once at the end, with the logits of the last token
        [1, vocab_size], or with None where there is no head.
    :param with_head: run the output head, as a unit of its own; without it, only the K/V of the
        last layer are computed.
    """

    def __init__(
        self,
        runner: ModelRunner,
        kind: UnitKind,
        rank: Rank,
        context: Context,
        tokens: tuple[int, ...],
        arrived_ns: int,
        complete: Callable[[Tensor | None], None],
        with_head: bool,
    ) -> None:
        assert tokens
        self.arrived_ns = arrived_ns
        self._runner = runner
        self._kind = kind
        self.rank = rank
        self._tokens = tokens
        self._complete = complete
        self._with_head = with_head
        self._layer = 0
        self._hidden: Tensor | None = None
        self._done = False
        prefix = context.prefix
        self._positions = runner.positions(prefix.num_tokens, len(tokens))
        self._plan = runner.plan(
            [
                Span(
                    num_tokens=len(tokens),
                    prefix_block=prefix.first_block,
                    prefix_tokens=prefix.num_tokens,
                    block_table=context.writable_blocks(len(tokens)),
                    num_own=0,
                    mask=MaskKind.CAUSAL,
                )
            ]
        )
        self._attend = runner.attend(self._plan)

    def next_unit(self) -> UnitKey | None:
        if self._done:
            return None
        if self._layer == self._runner.spec.num_layers:
            return UnitKey(UnitKind.HEAD, 1)
        return UnitKey(UnitKind.WRITE_KV if self._ends_here else self._kind, len(self._tokens))

    @property
    def _ends_here(self) -> bool:
        """Whether only the K/V of the layer at hand are wanted."""
        return not self._with_head and self._layer == self._runner.spec.num_layers - 1

    def run_unit(self) -> None:
        assert not self._done
        if self._layer == self._runner.spec.num_layers:
            assert self._hidden is not None
            self._finish(self._runner.logits(self._hidden))
            return
        if self._hidden is None:
            self._hidden = self._runner.embed(self._tokens)
        if self._ends_here:
            self._runner.write_layer(self._layer, self._hidden, self._positions, self._plan)
            self._finish(None)
            return
        self._hidden = self._runner.layer(
            self._kind, self._layer, self._hidden, self._positions, self._attend
        )
        self._layer += 1
        if self._layer == self._runner.spec.num_layers:
            self._hidden = self._hidden[-1:]

    def _finish(self, result: Tensor | None) -> None:
        self._done = True
        self._hidden = None
        self._complete(result)
