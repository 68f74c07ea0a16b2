# SPDX-License-Identifier: Apache-2.0
"""The attention backend for captured CUDA graphs: plans of one form share their indices' place.

A captured graph repeats kernels on fixed addresses. Here all that tells two plans of one form
apart - where a prefix lies and how long it is, where own tokens lie and how many - is read from
the device at addresses of the form, so a graph captured for one plan serves all of its form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .base import AttentionPlan, MaskKind, Span
from .layout import check_spans, fresh_rows, is_run, used_blocks
from .merge import merge_out
from .ragged import ragged_kernel, Sequences
from .registry import register
from .sdpa import SdpaBackend
from .sdpa_plan import SdpaPlan

_PREFIX_STEP = 256  # tokens to which the longest prefix of a form is rounded up
_LEAST_OWN_TOKENS = 64  # of a text row; then powers of two


@dataclass(frozen=True, slots=True)
class Form:
    """What two batches must have in common to be served by the same graph."""

    num_spans: int
    num_tokens: int  # of each span
    max_prefix: int  # 0: the spans have none
    own_blocks: int  # of each span, where they are scattered; 0: they follow one another
    max_own: int


class FormBuffers:
    """The place on the device that all plans of a form are brought to before they run."""

    def __init__(self, form: Form, block_size: int, device: torch.device) -> None:
        self.form = form
        self.current: StaticPlan | None = None
        num = form.num_spans
        self._num_wide = num * (form.num_tokens + form.own_blocks)
        self._wide = torch.zeros(self._num_wide + 4 * num + 2, dtype=torch.int64, device=device)
        self._narrow = torch.zeros(4 * num + 2, dtype=torch.int32, device=device)
        self.writes, tables, _ = self._wide.split_with_sizes(
            [num * form.num_tokens, num * form.own_blocks, 4 * num + 2]
        )
        starts, lengths, own_starts, own_lengths = self._narrow.split_with_sizes(
            [num + 1, num, num + 1, num]
        )
        self.prefix = Sequences(form.num_tokens, form.max_prefix, starts, lengths, folded=True)
        self.own = Sequences(form.num_tokens, form.max_own, own_starts, own_lengths, folded=False)
        self.gather: Tensor | None = None  # [num_spans * max_own] store rows
        if form.own_blocks:
            self.gather = torch.zeros(num * form.max_own, dtype=torch.int64, device=device)
            self._gather = self.gather.view(-1, block_size)
            self._tables, self._block_size = tables[:, None], block_size
            self._offsets = torch.arange(block_size, device=device)

    def load(self, plan: StaticPlan) -> None:
        """Bring a plan here, unless it is here already."""
        if self.current is plan:
            return
        self._wide.copy_(plan.packed)
        self._narrow.copy_(self._wide[self._num_wide :])
        if self.gather is not None:
            torch.add(self._offsets, self._tables, alpha=self._block_size, out=self._gather)
        self.current = plan


@dataclass(slots=True, eq=False)
class StaticPlan:
    """A prepared batch of a form."""

    num_tokens: int
    buffers: FormBuffers
    packed: Tensor  # [n] int64: rows to write, own blocks, starts and lengths

    def load(self) -> None:
        """Bring it to the place that graphs of its form read."""
        self.buffers.load(self)


def static_plan(attend: Callable[..., Any]) -> StaticPlan | None:
    """Return the plan behind an engine's `attend`, a partial over it; None: not a static one."""
    args = getattr(attend, 'args', ())
    return args[0] if args and isinstance(args[0], StaticPlan) else None


@register('static')
class StaticBackend(SdpaBackend):
    """As `sdpa`, with static plans for the batches that run most:

    | batch                                  | what it is                          |
    | -------------------------------------- | ----------------------------------- |
    | spans of one token on prefixes         | a decode step                       |
    | one bidirectional span, consecutive    | an action pass, or a prefix built   |
    | own blocks                             |                                     |

    Results differ from those of `sdpa` in the last digits. Without a kernel for lengths on the
    device (half precision on CUDA) prefixes are copied.
    """

    name = 'static'

    def __init__(self, kv: Tensor, num_heads: int, scale: float | None = None) -> None:
        super().__init__(kv, num_heads, scale)
        self._device = kv.device
        self._ragged = ragged_kernel(kv.device, kv.dtype, self._head_dim)
        self._buffers: dict[Form, FormBuffers] = {}

    def plan(self, spans: Sequence[Span]) -> AttentionPlan:  # type: ignore[override]
        """Check the spans and prepare their indices; see `AttentionBackend.plan`."""
        check_spans(spans, self._block_size, self._num_blocks)
        form = self._form(spans)
        if form is None:
            return super().plan(spans)
        if form not in self._buffers:
            self._buffers[form] = FormBuffers(form, self._block_size, self._device)
        writes = [row for span in spans for row in fresh_rows(span, self._block_size)]
        tables: list[int] = []
        own_starts: list[int] = []
        for index, span in enumerate(spans):
            table = used_blocks(span, self._block_size)
            own_starts.append(
                index * form.max_own if form.own_blocks else table[0] * self._block_size
            )
            if form.own_blocks:
                tables += [*table, *table[:1] * (form.own_blocks - len(table))]
        packed = [
            *writes,
            *tables,
            *(span.prefix_block * self._block_size for span in spans),
            0,
            *(span.prefix_tokens for span in spans),
            *own_starts,
            0,
            *(span.num_own + span.num_tokens for span in spans),
        ]
        return StaticPlan(
            len(writes), self._buffers[form], torch.tensor(packed, device=self._device)
        )

    def _form(self, spans: Sequence[Span]) -> Form | None:
        if any(span.mask is MaskKind.PREFIX_ONLY for span in spans):
            return None
        longest = max(span.num_own + span.num_tokens for span in spans)
        prefixes = [span.prefix_tokens for span in spans]
        max_prefix = -(-max(prefixes) // _PREFIX_STEP) * _PREFIX_STEP
        if min(prefixes) and all(span.num_tokens == 1 for span in spans):
            tokens = max(_LEAST_OWN_TOKENS, self._block_size)
            while tokens < longest:
                tokens *= 2
            blocks = -(-tokens // self._block_size)
            return Form(len(spans), 1, max_prefix, blocks, blocks * self._block_size)
        span = spans[0]
        if (
            len(spans) == 1
            and span.mask is MaskKind.BIDIRECTIONAL
            and is_run(used_blocks(span, self._block_size))
        ):
            most = -(-longest // _LEAST_OWN_TOKENS) * _LEAST_OWN_TOKENS
            return Form(1, span.num_tokens, max_prefix, 0, most)
        return None

    def write(self, plan: AttentionPlan, layer: int, k: Tensor, v: Tensor) -> None:
        """Write the fresh k and v; see `AttentionBackend.write`."""
        if not isinstance(plan, StaticPlan):
            super().write(plan, layer, k, v)
            return
        plan.load()
        self._write_rows(plan, layer, k, v)

    def _write_rows(self, plan: StaticPlan, layer: int, k: Tensor, v: Tensor) -> None:
        keys, values = self._rows[layer]
        keys.index_copy_(0, plan.buffers.writes, k)
        values.index_copy_(0, plan.buffers.writes, v)

    def _attend(
        self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if isinstance(plan, SdpaPlan):
            return super()._attend(plan, layer, q, k, v)
        assert isinstance(plan, StaticPlan) and q.shape[0] == plan.num_tokens
        plan.load()
        buffers = plan.buffers
        self._write_rows(plan, layer, k, v)
        keys, values = self._rows[layer]
        own_keys, own_values = keys, values
        if buffers.gather is not None:
            own_keys, own_values = self._layers[layer].index_select(1, buffers.gather).unbind(0)
        out, lse = self._ragged(q, own_keys, own_values, buffers.own, self._scale)
        if not buffers.form.max_prefix:
            return out.reshape(plan.num_tokens, -1), lse, None
        out_prefix, lse_prefix = self._ragged(q, keys, values, buffers.prefix, self._scale)
        out = merge_out(out_prefix, lse_prefix, out, lse)
        return out.reshape(plan.num_tokens, -1), lse_prefix, lse
