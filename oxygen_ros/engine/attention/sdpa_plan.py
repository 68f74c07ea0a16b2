"""What the sdpa backend prepares once per batch: segments, their indices and their masks."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .layout import is_run

Views = dict[int, tuple[Tensor, Tensor]]
"""K and V views by layer, kept because a plan may serve many passes."""


@dataclass(slots=True)
class Segment:
    """Queries that go through one kernel call, and the keys they see."""

    queries: Sequence[int]  # rows of q
    index: Tensor | None  # the query rows, where they do not follow one another
    batch: int  # sequences side by side, as many queries each
    start: int  # first store row, where the keys are a view
    length: int  # keys per sequence
    gather: Tensor | None  # [2 * batch * length] rows of K, then of V, where they are no view
    mask: Tensor | None  # additive, [batch or 1, 1, queries * group, length]
    views: Views = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """One side of the merge, the prefix or the own pages, for all queries of a batch."""

    segments: tuple[Segment, ...]
    whole: bool  # one segment holds all queries in order
    absent: tuple[Tensor, Tensor] | None  # zeros and -inf for the queries without this part
    order: Tensor | None  # brings the rows of segments and absent back into order


@dataclass(frozen=True, slots=True)
class Writes:
    """Where the fresh K and V go."""

    start: int  # first store row, where the rows are a view
    num_rows: int
    index: Tensor | None  # [num_rows] store rows, where they are no view
    source: Tensor | None  # [num_rows] rows of k and v, where some are not written
    views: Views = field(default_factory=dict)


@dataclass(slots=True)
class SdpaPlan:
    """A prepared batch; a part is None where no query has it."""

    num_tokens: int
    writes: Writes | None
    prefix: Part | None
    own: Part | None


class PlanBuilder:
    """Makes the tensors of plans for one store.

    :param kv: the store, [num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim].
    :param num_rows: store rows of a layer; V lies that many rows behind K.
    """

    def __init__(self, kv: Tensor, num_rows: int, num_heads: int) -> None:
        self._device, self._dtype = kv.device, kv.dtype
        self._num_rows = num_rows
        self._group = num_heads // kv.shape[4]
        self._out_shape = (num_heads, kv.shape[5])

    def writes(self, rows: Sequence[int], sources: Sequence[int],
               num_tokens: int) -> Writes | None:
        """Prepare writing k[sources] and v[sources] to store rows."""
        if not rows:
            return None
        index = None if is_run(rows) else self._index(rows)
        source = None if len(sources) == num_tokens else self._index(sources)
        return Writes(rows[0], len(rows), index, source)

    def view(self, queries: Sequence[int], start: int, length: int) -> Segment:
        """Prepare queries that all see the store rows start .. start + length - 1."""
        return self._segment(queries, 1, start, length, None, None)

    def keys(self, queries: Sequence[int], rows: Sequence[int],
             num_older: int | None = None) -> Segment:
        """Prepare queries that all see the same rows, or query i only rows 0 .. num_older + i."""
        gather = None if is_run(rows) else self._gather(rows)
        mask = None
        if num_older is not None:
            mask = self._hidden(len(queries), len(rows)).triu_(num_older + 1)
            mask = mask.repeat_interleave(self._group, dim=0)[None, None]
        return self._segment(queries, 1, rows[0], len(rows), gather, mask)

    def padded(self, queries: Sequence[int], rows: Sequence[list[int]]) -> Segment:
        """Prepare single queries that each see rows of their own.

        The padding is masked, and repeats a live row because dead ones may hold NaN.
        """
        if len(rows) == 1:
            return self.keys(queries, rows[0])
        lengths = [len(one) for one in rows]
        longest = max(lengths)
        keys: list[int] = []
        for one in rows:
            keys += one
            keys += one[:1] * (longest - len(one))
        mask = None
        if min(lengths) < longest:
            live = (torch.arange(longest, device=self._device)
                    < torch.tensor(lengths, device=self._device)[:, None])
            mask = self._hidden(len(rows), longest).masked_fill_(live, 0.0)[:, None, None]
            mask = mask.expand(-1, -1, self._group, -1)
        return self._segment(queries, len(rows), 0, longest, self._gather(keys), mask)

    def part(self, segments: Sequence[Segment], num_tokens: int) -> Part | None:
        """Join segments into one side of the merge."""
        if not segments:
            return None
        rows = [query for segment in segments for query in segment.queries]
        missing = sorted(set(range(num_tokens)).difference(rows))
        absent = None
        if missing:
            zeros = torch.zeros(len(missing), *self._out_shape, device=self._device,
                                dtype=self._dtype)
            lse_dtype = torch.promote_types(self._dtype, torch.float32)
            absent = (zeros, torch.full(zeros.shape[:2], -torch.inf, device=self._device,
                                        dtype=lse_dtype))
            rows += missing
        order = None
        if not is_run(rows):
            order = self._index(sorted(range(num_tokens), key=rows.__getitem__))
        whole = len(segments) == 1 and absent is None and order is None
        return Part(tuple(segments), whole, absent, order)

    def _segment(self, queries: Sequence[int], batch: int, start: int, length: int,
                 gather: Tensor | None, mask: Tensor | None) -> Segment:
        index = None if is_run(queries) else self._index(queries)
        return Segment(queries, index, batch, start, length, gather, mask)

    def _hidden(self, num_rows: int, num_columns: int) -> Tensor:
        return torch.full((num_rows, num_columns), -torch.inf, device=self._device,
                          dtype=self._dtype)

    def _gather(self, rows: Sequence[int]) -> Tensor:
        return self._index([*rows, *[row + self._num_rows for row in rows]])

    def _index(self, rows: Sequence[int]) -> Tensor:
        return torch.tensor(rows, device=self._device)
