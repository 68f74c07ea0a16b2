# SPDX-License-Identifier: Apache-2.0
"""The attention backend that explains itself: gathers, masks, softmax; the oracle of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import itertools

import torch
from torch import Tensor

from .base import AttentionPlan, MaskKind, Span
from .layout import check_spans, check_store, fresh_rows
from .registry import register


@dataclass(slots=True)
class ReferencePlan:
    """The spans, and for each the rows to read and what its queries may see."""

    num_tokens: int
    spans: tuple[Span, ...]
    rows: tuple[Tensor, ...]  # per span: prefix, then own, older to fresh
    visible: tuple[Tensor, ...]  # per span: [num_tokens, rows] bool

    def parts(self) -> list[slice]:
        """Rows of q, k and v of each span."""
        ends = list(itertools.accumulate(span.num_tokens for span in self.spans))
        return [slice(end - span.num_tokens, end) for end, span in zip(ends, self.spans)]


@register('reference')
class ReferenceBackend:
    """Attention over one contiguous copy of K and V per span.

    Only the thread that owns the engine calls it.

    :param kv: [num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim].
    :param scale: factor on the scores, head_dim ** -0.5 by default.
    :raises ValueError: the store does not fit the number of heads.
    """

    name = 'reference'

    def __init__(self, kv: Tensor, num_heads: int, scale: float | None = None) -> None:
        check_store(kv, num_heads)
        self._num_blocks, self._block_size, self._num_kv_heads, self._head_dim = kv.shape[2:]
        self._num_heads = num_heads
        self._scale = self._head_dim**-0.5 if scale is None else scale
        self._store = kv.flatten(2, 3)  # [num_layers, 2, rows, num_kv_heads, head_dim]
        self.prefix_bytes_copied = 0

    def plan(self, spans: Sequence[Span]) -> ReferencePlan:
        """Check the spans and list their rows; see `AttentionBackend.plan`."""
        check_spans(spans, self._block_size, self._num_blocks)
        device = self._store.device
        rows, visible = [], []
        for span in spans:
            start = span.prefix_block * self._block_size
            span_rows = list(range(start, start + span.prefix_tokens))
            if span.mask is not MaskKind.PREFIX_ONLY:
                own = replace(span, num_tokens=span.num_own + span.num_tokens, num_own=0)
                span_rows += fresh_rows(own, self._block_size)
            seen = torch.ones(span.num_tokens, len(span_rows), dtype=torch.bool, device=device)
            if span.mask is MaskKind.CAUSAL:
                seen = seen.tril(span.prefix_tokens + span.num_own)
            rows.append(torch.tensor(span_rows, device=device))
            visible.append(seen)
        return ReferencePlan(
            sum(span.num_tokens for span in spans), tuple(spans), tuple(rows), tuple(visible)
        )

    def run(
        self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Write, gather, attend; see `AttentionBackend.run`."""
        assert isinstance(plan, ReferencePlan)
        self.write(plan, layer, k, v)
        keys, values = self._store[layer]
        outs, lses = [], []
        for span, rows, visible, part in zip(
            plan.spans, plan.rows, plan.visible, plan.parts(), strict=True
        ):
            token_bytes = 2 * self._num_kv_heads * self._head_dim * keys.element_size()
            self.prefix_bytes_copied += span.prefix_tokens * token_bytes
            out, lse = self._attend_span(q[part], keys[rows], values[rows], visible)
            outs.append(out)
            lses.append(lse)
        return torch.cat(outs), torch.cat(lses)

    def write(self, plan: AttentionPlan, layer: int, k: Tensor, v: Tensor) -> None:
        """Write the fresh k and v; see `AttentionBackend.write`."""
        assert isinstance(plan, ReferencePlan)
        keys, values = self._store[layer]
        for span, rows, part in zip(plan.spans, plan.rows, plan.parts(), strict=True):
            if span.mask is not MaskKind.PREFIX_ONLY:
                keys[rows[-span.num_tokens :]] = k[part]
                values[rows[-span.num_tokens :]] = v[part]

    def attend(self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Do as `run`, without the log-sum-exp."""
        return self.run(plan, layer, q, k, v)[0]

    def _attend_span(
        self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attend to gathered rows.

        :param q: [num_tokens, num_heads, head_dim]; k, v: [rows, num_kv_heads, head_dim].
        :return: out [num_tokens, num_heads * head_dim] and log-sum-exp [num_tokens, num_heads].
        """
        dtype = torch.promote_types(q.dtype, torch.float32)
        group = self._num_heads // self._num_kv_heads
        k = k.to(dtype).repeat_interleave(group, dim=1)
        v = v.to(dtype).repeat_interleave(group, dim=1)
        scores = torch.einsum('qhd,khd->hqk', q.to(dtype), k) * self._scale
        scores = scores.masked_fill(~visible, -torch.inf)
        lse = torch.logsumexp(scores, dim=-1)  # [num_heads, num_tokens]
        out = torch.einsum('hqk,khd->qhd', torch.exp(scores - lse[..., None]), v)
        return out.flatten(1).to(q.dtype), lse.T.contiguous()
