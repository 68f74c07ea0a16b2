# SPDX-License-Identifier: Apache-2.0
"""The batched decode step: all live text requests, each on its own prefix, one token on.

A request whose grammar has forced tokens after the sampled one takes part with a row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..attention import MaskKind, Span
from ..model import Attend
from ..model_runner import ModelRunner
from ..scheduling.work import Rank, UnitKey, UnitKind
from .requests import TextRequest


class DecodeStep:
    """One step of a fixed set of requests, suspended between any two layers."""

    def __init__(self, runner: ModelRunner, requests: Sequence[TextRequest]) -> None:
        self.requests = list(requests)
        self.layer = 0
        self._runner = runner
        self._hidden = runner.embed(
            [  # [num_rows, width]
                token for request in requests for token in request.tokens[-request.num_pending :]
            ]
        )
        self._prepare()

    def _prepare(self) -> None:
        spans = []
        positions: list[int] = []
        self._last_rows = []  # of each request
        for request in self.requests:
            context = request.context
            assert context is not None
            prefix, num_tokens = context.prefix, request.num_pending
            spans.append(
                Span(
                    num_tokens=num_tokens,
                    prefix_block=prefix.first_block,
                    prefix_tokens=prefix.num_tokens,
                    block_table=context.writable_blocks(num_tokens),
                    num_own=context.num_tokens,
                    mask=MaskKind.CAUSAL,
                )
            )
            start = prefix.num_tokens + context.num_tokens
            positions.extend(range(start, start + num_tokens))
            self._last_rows.append(len(positions) - 1)
        self.num_rows = len(positions)
        self._positions = self._runner.position_rows(positions)
        self._attend: Attend = self._runner.attend(self._runner.plan(spans))

    def remove(self, request: TextRequest) -> None:
        """Take one request out; the others keep their hidden state and go on at the same layer."""
        index = self.requests.index(request)
        end = self._last_rows[index] + 1
        begin = end - request.num_pending
        kept = [row for row in range(self.num_rows) if not begin <= row < end]
        del self.requests[index]
        if self.requests:
            self._hidden = self._hidden[torch.tensor(kept, device=self._hidden.device)]
            self._prepare()

    def run_layer(self) -> None:
        """Run the next layer of all rows."""
        self._hidden = self._runner.layer(
            UnitKind.DECODE, self.layer, self._hidden, self._positions, self._attend
        )
        self.layer += 1

    def run_head(self) -> Tensor:
        """Return the logits of each request's last row: [num_requests, vocab_size] float32."""
        hidden = self._hidden
        if self.num_rows > len(self.requests):
            hidden = hidden[torch.tensor(self._last_rows, device=hidden.device)]
        return self._runner.logits(hidden)


class BatchedDecode:
    """Decode steps, one after another, over whatever requests are ready when a step begins.

    :param choose: returns the requests of the next step, their next block taken; may be empty when
        memory is short.
    :param ready: returns the requests that could take part, best first, at most a batch of them.
    :param deliver: takes the logits of a finished step.
    :param arrived_ns: returns where the step stands among work in order of arrival.
    """

    def __init__(
        self,
        runner: ModelRunner,
        ready: Callable[[], Sequence[TextRequest]],
        choose: Callable[[], Sequence[TextRequest]],
        deliver: Callable[[Sequence[TextRequest], Tensor], None],
        arrived_ns: Callable[[], int],
    ) -> None:
        self._runner = runner
        self._ready = ready
        self._choose = choose
        self._deliver = deliver
        self._arrived_ns = arrived_ns
        self.step: DecodeStep | None = None

    @property
    def _requests(self) -> Sequence[TextRequest]:
        return self.step.requests if self.step is not None else self._ready()

    @property
    def rank(self) -> Rank:
        """The best rank of its requests: what rides along does not wait."""
        return min((request.rank for request in self._requests), default=Rank.SCENE_GRAPH)

    @property
    def arrived_ns(self) -> int:
        return self._arrived_ns()

    def next_unit(self) -> UnitKey | None:
        if self.step is not None:
            at_head = self.step.layer == self._runner.spec.num_layers
            return (
                UnitKey(UnitKind.HEAD, len(self.step.requests))
                if at_head
                else UnitKey(UnitKind.DECODE, self.step.num_rows)
            )
        num_rows = sum(request.num_pending for request in self._ready())
        return UnitKey(UnitKind.DECODE, num_rows) if num_rows else None

    def run_unit(self) -> None:
        if self.step is None:
            requests = self._choose()
            if not requests:
                return
            self.step = DecodeStep(self._runner, requests)
        step = self.step
        if step.layer < self._runner.spec.num_layers:
            step.run_layer()
            return
        counters = self._runner.counters
        counters.decode_steps += 1
        counters.decode_rows += step.num_rows
        logits = step.run_head()
        self.step = None
        self._deliver(step.requests, logits)

    def remove(self, request: TextRequest) -> None:
        """Take a request out of the step at hand, if it is in it."""
        if self.step is not None and request in self.step.requests:
            self.step.remove(request)
            if not self.step.requests:
                self.step = None
