"""The attention backend that copies no prefix: views on the store, merged by log-sum-exp."""
from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .base import AttentionPlan, MaskKind, Span
from .kernels import segment_kernel
from .layout import check_spans, check_store, own_rows
from .merge import merge_out
from .registry import register
from .sdpa_plan import Part, PartBuilder, SdpaPlan, Segment


@register('sdpa')
class SdpaBackend:
    """Attention over views on the store; the default on a CPU and a sound one on a GPU.

    | keys of a span          | read as                             | in one kernel call            |
    | ----------------------- | ----------------------------------- | ----------------------------- |
    | prefix                  | a view                              | all spans of the same prefix  |
    | own, blocks in a row    | a view                              | the span                      |
    | own, blocks scattered   | gathered, so in the view's layout   | the span                      |
    | own, one fresh token    | gathered, padded to the longest     | all such spans                |

    The result of a batch of one span depends on nothing but the span's q and live rows, to the
    bit. Only the thread that owns the engine calls it.

    :param kv: [num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim].
    :param scale: factor on the scores, head_dim ** -0.5 by default.
    :param batch_invariant: attend to every span on its own, so that its result is, to the bit,
        that of a batch of one; slower.
    :raises ValueError: the store does not fit the number of heads.
    """

    name = 'sdpa'

    def __init__(self, kv: Tensor, num_heads: int, scale: float | None = None,
                 batch_invariant: bool = False) -> None:
        check_store(kv, num_heads)
        self._num_blocks, self._block_size, self._num_kv_heads, self._head_dim = kv.shape[2:]
        self._num_heads = num_heads
        self._group = num_heads // self._num_kv_heads
        self._scale = self._head_dim ** -0.5 if scale is None else scale
        self._batch_invariant = batch_invariant
        self._kernel = segment_kernel(kv.device, kv.dtype, self._head_dim)
        self._device = kv.device
        self._lse_dtype = torch.promote_types(kv.dtype, torch.float32)
        store = kv.flatten(2, 3)  # [num_layers, 2, num_rows, num_kv_heads, head_dim]
        self._num_rows = store.shape[2]
        self._rows = [layer.unbind(0) for layer in store]  # [num_rows, num_kv_heads, head_dim]
        self._both = list(store.flatten(1, 2))  # [2 * num_rows, num_kv_heads, head_dim]
        self._heads = [(k.transpose(0, 1).unsqueeze(0), v.transpose(0, 1).unsqueeze(0))
                       for k, v in self._rows]  # [1, num_kv_heads, num_rows, head_dim]
        self.prefix_bytes_copied = 0  # stays so: a prefix is only ever read through `_heads`

    def plan(self, spans: Sequence[Span]) -> SdpaPlan:
        """Check the spans and prepare their indices and masks; see `AttentionBackend.plan`."""
        check_spans(spans, self._block_size, self._num_blocks)
        prefix = PartBuilder(self._device, self._lse_dtype, self._num_rows, self._group)
        own = PartBuilder(self._device, self._lse_dtype, self._num_rows, self._group)
        prefixes: dict[tuple[int, int, int], list[int]] = {}
        single: list[tuple[int, list[int]]] = []
        written: list[int] = []
        sources: list[int] = []
        first = 0
        for index, span in enumerate(spans):
            queries = list(range(first, first + span.num_tokens))
            first += span.num_tokens
            if span.prefix_tokens:
                key = (span.prefix_block, span.prefix_tokens,
                       index if self._batch_invariant else 0)
                prefixes.setdefault(key, []).extend(queries)
            if span.mask is MaskKind.PREFIX_ONLY:
                continue
            rows = own_rows(span, self._block_size)
            written += rows[span.num_own:]
            sources += queries
            if span.num_tokens == 1 and not self._batch_invariant:
                single.append((queries[0], rows))
            elif span.num_tokens > 1 and span.mask is MaskKind.CAUSAL:
                own.add_causal(queries, rows, span.num_own)
            else:
                own.add(queries, rows)
        for (block, num_tokens, _), queries in prefixes.items():
            start = block * self._block_size
            prefix.add(queries, range(start, start + num_tokens))
        if single:
            own.add_padded([query for query, _ in single], [rows for _, rows in single])
        num_layers, width = len(self._rows), self._num_heads * self._head_dim
        return SdpaPlan(first, prefix.build(first, width, self._num_heads, num_layers),
                        own.build(first, width, self._num_heads, num_layers))
