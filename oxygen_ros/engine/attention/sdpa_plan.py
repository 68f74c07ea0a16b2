# SPDX-License-Identifier: Apache-2.0
"""What the sdpa backend prepares once per batch: segments, their indices and their masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .base import MaskKind, Span
from .layout import fresh_rows, is_run, used_blocks

Views = dict[int, tuple[Tensor, Tensor]]
"""K and V views by layer, kept because a plan may serve many passes."""

_MAX_PREFIX_VIEWS = 64  # more than there are slots; lengths vary with prompts


@dataclass(frozen=True, slots=True)
class Segment:
    """Queries that go through one kernel call, and the keys they see."""

    queries: Sequence[int]  # rows of q
    index: Tensor | None  # the same, where they do not follow one another
    batch: int  # sequences side by side, each with as many queries
    length: int  # keys per sequence
    start: int  # first store row, where the keys are a view
    gather: Tensor | None  # [batch * length] store rows, where they are not
    mask: Tensor | None  # additive, [batch, 1, queries of a sequence * group, length]
    views: Views


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
    """

    def __init__(self, kv: Tensor, num_heads: int) -> None:
        self._device, self._dtype = kv.device, kv.dtype
        _, _, num_blocks, self._block_size, num_kv_heads, head_dim = kv.shape
        self._group = num_heads // num_kv_heads
        self._out_shape = (num_heads, head_dim)
        rows = torch.arange(num_blocks * self._block_size, device=self._device)
        self._positions = rows
        self._block_rows = rows.view(num_blocks, self._block_size)
        self._live = torch.zeros((), device=self._device, dtype=self._dtype)
        self._hidden = torch.full_like(self._live, -torch.inf)
        self._prefix_views: dict[tuple[int, int], Views] = {}

    def writes(self, spans: Sequence[Span]) -> Writes | None:
        """Prepare writing the fresh rows of all spans that have own pages."""
        rows: list[int] = []
        sources: list[int] = []
        first = 0
        for span in spans:
            if span.mask is not MaskKind.PREFIX_ONLY:
                rows += fresh_rows(span, self._block_size)
                sources += range(first, first + span.num_tokens)
            first += span.num_tokens
        if not rows:
            return None
        index = None if is_run(rows) else self._index(rows)
        source = None if len(sources) == first else self._index(sources)
        return Writes(rows[0], len(rows), index, source)

    def prefix(self, queries: Sequence[int], block: int, length: int) -> Segment:
        """Prepare queries that all see the same prefix."""
        start = block * self._block_size
        if len(self._prefix_views) >= _MAX_PREFIX_VIEWS:
            self._prefix_views.clear()
        views = self._prefix_views.setdefault((start, length), {})
        return self._segment(queries, 1, length, start, None, None, views)

    def own(self, queries: Sequence[int], span: Span) -> Segment:
        """Prepare the fresh tokens of one span, alone over its own pages."""
        length = span.num_own + span.num_tokens
        table = used_blocks(span, self._block_size)
        gather = None
        if not is_run(table):
            gather = self._block_rows.index_select(0, self._index(table)).flatten()[:length]
        mask = None
        if span.mask is MaskKind.CAUSAL and span.num_tokens > 1:
            mask = self._hidden.expand(span.num_tokens, length).triu(span.num_own + 1)
            mask = mask.repeat_interleave(self._group, dim=0)[None, None]
        return self._segment(queries, 1, length, table[0] * self._block_size, gather, mask, {})

    def padded(self, queries: Sequence[int], spans: Sequence[Span]) -> Segment:
        """Prepare spans of one fresh token each, side by side over their own pages.

        Padding is masked, and repeats a live row because dead ones may hold NaN.
        """
        tables = [used_blocks(span, self._block_size) for span in spans]
        widest = max(len(table) for table in tables)
        lengths = [span.num_own + 1 for span in spans]
        packed: list[int] = []
        for table, length in zip(tables, lengths, strict=True):
            packed.append(length)
            packed += table
            packed += table[:1] * (widest - len(table))
        index = self._index(packed).view(len(spans), widest + 1)
        longest = max(lengths)
        rows = self._block_rows.index_select(0, index[:, 1:].flatten())
        rows = rows.view(len(spans), -1)[:, :longest]
        mask = None
        if min(lengths) < longest:
            live = self._positions[:longest] < index[:, :1]  # [spans, longest]
            rows = torch.where(live, rows, rows[:, :1])
            mask = torch.where(live, self._live, self._hidden)[:, None, None]
            mask = mask.expand(-1, -1, self._group, -1)
        return self._segment(queries, len(spans), longest, 0, rows.flatten(), mask, {})

    def part(self, segments: Sequence[Segment], num_tokens: int) -> Part | None:
        """Join segments into one side of the merge."""
        if not segments:
            return None
        if len(segments[0].queries) == num_tokens:
            return Part(tuple(segments), True, None, None)
        rows = [query for segment in segments for query in segment.queries]
        missing = sorted(set(range(num_tokens)).difference(rows))
        absent = None
        if missing:
            lse_dtype = torch.promote_types(self._dtype, torch.float32)
            shape = (len(missing), *self._out_shape)
            absent = (
                torch.zeros(shape, device=self._device, dtype=self._dtype),
                torch.full(shape[:2], -torch.inf, device=self._device, dtype=lse_dtype),
            )
            rows += missing
        order = None
        if not is_run(rows):
            order = self._index(sorted(range(num_tokens), key=rows.__getitem__))
        return Part(tuple(segments), False, absent, order)

    def _segment(
        self,
        queries: Sequence[int],
        batch: int,
        length: int,
        start: int,
        gather: Tensor | None,
        mask: Tensor | None,
        views: Views,
    ) -> Segment:
        index = None if is_run(queries) else self._index(queries)
        return Segment(queries, index, batch, length, start, gather, mask, views)

    def _index(self, rows: Sequence[int]) -> Tensor:
        return torch.tensor(rows, device=self._device)
