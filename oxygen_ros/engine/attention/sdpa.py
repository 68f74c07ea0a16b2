# SPDX-License-Identifier: Apache-2.0
"""The attention backend that copies no prefix: views on the store, merged by log-sum-exp."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .base import AttentionPlan, MaskKind, Span
from .kernels import segment_kernel
from .layout import check_spans, check_store
from .merge import merge_out
from .registry import register
from .sdpa_plan import Part, PlanBuilder, SdpaPlan, Segment, Writes


@register('sdpa')
class SdpaBackend:
    """Attention over views on the store; the default on a CPU and a sound one on a GPU.

    | keys of a span        | read as                           | in one kernel call with       |
    | --------------------- | --------------------------------- | ----------------------------- |
    | prefix                | a view                            | all spans of the same prefix  |
    | own, consecutive rows | a view                            | nothing else                  |
    | own, scattered blocks | gathered into a view's layout     | nothing else                  |
    | own, one fresh token  | gathered, padded to the longest   | all spans with one            |

    The result of a batch of one span depends on nothing but that span's q, k, v and live rows, to
    the bit. Only the thread that owns the engine calls it.

    :param kv: [num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim].
    :param scale: factor on the scores, head_dim ** -0.5 by default.
    :raises ValueError: the store does not fit the number of heads.
    """

    name = 'sdpa'

    def __init__(self, kv: Tensor, num_heads: int, scale: float | None = None) -> None:
        check_store(kv, num_heads)
        self._num_blocks, self._block_size, self._num_kv_heads, self._head_dim = kv.shape[2:]
        self._num_heads = num_heads
        self._group = num_heads // self._num_kv_heads
        self._scale = self._head_dim**-0.5 if scale is None else scale
        self._kernel = segment_kernel(kv.device, kv.dtype, self._head_dim)
        self._layers = kv.flatten(2, 3).unbind(0)  # [2, num_rows, num_kv_heads, head_dim]
        self._rows = [both.unbind(0) for both in self._layers]
        self._heads = [
            (k.transpose(0, 1).unsqueeze(0), v.transpose(0, 1).unsqueeze(0)) for k, v in self._rows
        ]  # [1, num_kv_heads, num_rows, head_dim]
        self._builder = PlanBuilder(kv, num_heads)
        self.prefix_bytes_copied = 0  # stays so: a prefix is read through views alone

    def plan(self, spans: Sequence[Span]) -> SdpaPlan:
        """Check the spans and prepare their indices and masks; see `AttentionBackend.plan`."""
        check_spans(spans, self._block_size, self._num_blocks)
        build = self._builder
        prefixes: dict[tuple[int, int], list[int]] = {}
        single: list[tuple[int, Span]] = []
        own: list[Segment] = []
        num_tokens = 0
        for span in spans:
            queries = range(num_tokens, num_tokens + span.num_tokens)
            num_tokens += span.num_tokens
            if span.prefix_tokens:
                prefixes.setdefault((span.prefix_block, span.prefix_tokens), []).extend(queries)
            if span.mask is MaskKind.PREFIX_ONLY:
                continue
            if span.num_tokens == 1:
                single.append((queries[0], span))
            else:
                own.append(build.own(queries, span))
        if len(single) == 1:
            own.append(build.own([single[0][0]], single[0][1]))
        elif single:
            own.append(build.padded([query for query, _ in single], [span for _, span in single]))
        prefix = [
            build.prefix(queries, block, length) for (block, length), queries in prefixes.items()
        ]
        return SdpaPlan(
            num_tokens,
            build.writes(spans),
            build.part(prefix, num_tokens),
            build.part(own, num_tokens),
        )

    def run(
        self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Write the fresh k and v, then attend; see `AttentionBackend.run`."""
        out, lse, lse_own = self._attend(plan, layer, q, k, v)
        return out, lse if lse_own is None else torch.logaddexp(lse, lse_own)

    def write(self, plan: AttentionPlan, layer: int, k: Tensor, v: Tensor) -> None:
        """Write the fresh k and v; see `AttentionBackend.write`."""
        assert isinstance(plan, SdpaPlan) and k.shape[0] == plan.num_tokens
        if plan.writes is not None:
            self._write(plan.writes, layer, k, v)

    def attend(self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Do as `run`, without the log-sum-exp."""
        return self._attend(plan, layer, q, k, v)[0]

    def _attend(
        self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the output [num_tokens, num_heads * head_dim] and each part's log-sum-exp."""
        assert isinstance(plan, SdpaPlan) and q.shape[0] == plan.num_tokens
        if plan.writes is not None:
            self._write(plan.writes, layer, k, v)
        lse_own = None
        if plan.prefix is None:
            assert plan.own is not None
            out, lse = self._attend_part(plan.own, layer, q)
        else:
            out, lse = self._attend_part(plan.prefix, layer, q)
            if plan.own is not None:
                out_own, lse_own = self._attend_part(plan.own, layer, q)
                out = merge_out(out, lse, out_own, lse_own)
        return out.reshape(plan.num_tokens, -1), lse, lse_own

    def _write(self, writes: Writes, layer: int, k: Tensor, v: Tensor) -> None:
        if writes.source is not None:
            k, v = k.index_select(0, writes.source), v.index_select(0, writes.source)
        keys, values = self._rows[layer]
        if writes.index is not None:
            keys.index_copy_(0, writes.index, k)
            values.index_copy_(0, writes.index, v)
            return
        views = writes.views.get(layer)
        if views is None:
            views = (
                keys.narrow(0, writes.start, writes.num_rows),
                values.narrow(0, writes.start, writes.num_rows),
            )
            writes.views[layer] = views
        views[0].copy_(k)
        views[1].copy_(v)

    def _attend_part(self, part: Part, layer: int, q: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to one side: out [num_tokens, num_heads, head_dim] and lse without head_dim."""
        if part.whole:
            return self._attend_segment(part.segments[0], layer, q)
        outs, lses = [], []
        for segment in part.segments:
            rows = (
                q.narrow(0, segment.queries[0], len(segment.queries))
                if segment.index is None
                else q.index_select(0, segment.index)
            )
            out, lse = self._attend_segment(segment, layer, rows)
            outs.append(out)
            lses.append(lse)
        if part.absent is not None:
            outs.append(part.absent[0])
            lses.append(part.absent[1])
        out, lse = torch.cat(outs), torch.cat(lses)
        if part.order is None:
            return out, lse
        return out.index_select(0, part.order), lse.index_select(0, part.order)

    def _attend_segment(self, segment: Segment, layer: int, q: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to one run of keys, heads of a group folded into the query axis.

        :param q: [num_queries, num_heads, head_dim].
        :return: out as q, lse [num_queries, num_heads].
        """
        keys, values = self._segment_kv(segment, layer)
        batch, num_queries = segment.batch, len(segment.queries)
        num_kv_heads, head_dim = self._num_kv_heads, self._head_dim
        if num_kv_heads == 1:  # rows and heads are neighbours: no copy
            folded = q.reshape(batch, 1, -1, head_dim)
            out, lse = self._kernel(folded, keys, values, segment.mask, self._scale)
            return (
                out.reshape(num_queries, self._num_heads, head_dim),
                lse.reshape(num_queries, self._num_heads),
            )
        folded = q.reshape(batch, -1, num_kv_heads, self._group, head_dim).transpose(1, 2)
        folded = folded.reshape(batch, num_kv_heads, -1, head_dim)
        out, lse = self._kernel(folded, keys, values, segment.mask, self._scale)
        out = out.reshape(batch, num_kv_heads, -1, self._group, head_dim).transpose(1, 2)
        lse = lse.reshape(batch, num_kv_heads, -1, self._group).transpose(1, 2)
        return (
            out.reshape(num_queries, self._num_heads, head_dim),
            lse.reshape(num_queries, self._num_heads),
        )

    def _segment_kv(self, segment: Segment, layer: int) -> tuple[Tensor, Tensor]:
        """Return K and V: [batch, num_kv_heads, length, head_dim], views unless scattered."""
        if segment.gather is not None:
            rows = self._layers[layer].index_select(1, segment.gather)
            keys, values = (
                rows.view(2, segment.batch, segment.length, self._num_kv_heads, self._head_dim)
                .transpose(2, 3)
                .unbind(0)
            )
            return keys, values
        views = segment.views.get(layer)
        if views is None:
            keys, values = self._heads[layer]
            views = (
                keys.narrow(2, segment.start, segment.length),
                values.narrow(2, segment.start, segment.length),
            )
            segment.views[layer] = views
        return views
