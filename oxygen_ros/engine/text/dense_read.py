# SPDX-License-Identifier: Apache-2.0
"""The dense read of a prefix: a fixed set of query vectors looks at it once and leaves no K/V.

What the queries brought back is one vector, the embedding of the place that the observation shows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...types import FloatArray
from ..attention import MaskKind, Span
from ..kv.context import Context
from ..model_runner import ModelRunner
from ..scheduling.work import Rank, UnitKey, UnitKind


class DenseRead:
    """One pass of N query vectors over a shared prefix, a unit a layer.

    The queries are the embeddings of N tokens that are spread evenly over the vocabulary: fixed by
    the weights, and of the kind that the layers of any model take. Each sees the prefix and
    nothing else, so no pages are needed, and no reader of the prefix can tell that it was there.
    The embedding is the mean, over the queries, of what the layers added to them, brought to unit
    length.

    :param complete: called once at the end, with the embedding [width] float32.
    """

    def __init__(
        self,
        runner: ModelRunner,
        rank: Rank,
        context: Context,
        num_queries: int,
        arrived_ns: int,
        complete: Callable[[FloatArray], None],
    ) -> None:
        prefix = context.prefix
        self.arrived_ns = arrived_ns
        self._runner = runner
        self.rank = rank
        self._num_queries = num_queries
        self._complete = complete
        self._layer = 0
        self._queries: Tensor | None = None
        self._hidden: Tensor | None = None  # [num_queries, width]
        self._positions = runner.positions(prefix.num_tokens, num_queries)
        self._attend = runner.attend(
            runner.plan(
                [
                    Span(
                        num_tokens=num_queries,
                        prefix_block=prefix.first_block,
                        prefix_tokens=prefix.num_tokens,
                        block_table=(),
                        num_own=0,
                        mask=MaskKind.PREFIX_ONLY,
                    )
                ]
            )
        )

    def next_unit(self) -> UnitKey | None:
        if self._layer == self._runner.spec.num_layers:
            return None
        return UnitKey(UnitKind.DENSE_READ, self._num_queries)

    def run_unit(self) -> None:
        runner = self._runner
        if self._hidden is None:
            step = runner.spec.vocab_size / self._num_queries
            self._queries = runner.embed([int(step * index) for index in range(self._num_queries)])
            self._hidden = self._queries
        self._hidden = runner.layer(
            UnitKind.DENSE_READ, self._layer, self._hidden, self._positions, self._attend
        )
        self._layer += 1
        if self._layer < runner.spec.num_layers:
            return
        assert self._queries is not None
        added = (self._hidden.float() - self._queries.float()).mean(0)
        runner.counters.dense_reads += 1
        embedding: FloatArray = torch.nn.functional.normalize(added, dim=0).cpu().numpy()
        self._hidden = self._queries = None
        self._complete(embedding)
