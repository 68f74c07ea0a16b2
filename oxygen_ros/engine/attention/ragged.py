# SPDX-License-Identifier: Apache-2.0
"""Attention of sequences whose places and lengths are read from the device, not from the host.

So one captured CUDA graph serves whatever prefix and however many own tokens there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .kernels import attend_matmul


@dataclass(frozen=True, slots=True)
class Sequences:
    """Runs of keys, each seen whole by consecutive queries, by all runs as many.

    Folded: all queries of a run go in as heads of one query. Only then does FlashAttention split
    the keys among processors, of which a few queries alone would fill few.
    """

    num_queries: int  # of each
    max_length: int  # keys of the longest that may come
    starts: Tensor  # [num + 1] int32: first rows of K and V; the last one is not read
    lengths: Tensor  # [num] int32: keys of each, at least 1
    folded: bool
    query_starts: Tensor = field(init=False)  # [num + 1] int32

    def __post_init__(self) -> None:
        num = len(self.starts)
        queries = torch.arange(num, dtype=torch.int32, device=self.starts.device)
        object.__setattr__(
            self, 'query_starts', queries if self.folded else queries * self.num_queries
        )


RaggedKernel = Callable[[Tensor, Tensor, Tensor, Sequences, float], tuple[Tensor, Tensor]]
"""`kernel(q, k, v, sequences, scale) -> (out, lse)`.

q [num_tokens, num_heads, head_dim], k and v [num_rows, num_kv_heads, head_dim], out as q, lse
[num_tokens, num_heads] in float32 (float64 for float64).
"""


def ragged_kernel(device: torch.device, dtype: torch.dtype, head_dim: int) -> RaggedKernel:
    """Choose the kernel for a store."""
    half = dtype in (torch.bfloat16, torch.float16)
    if device.type == 'cuda' and half and head_dim % 8 == 0 and head_dim <= 256:
        return attend_flash
    return attend_gathered


def attend_flash(
    q: Tensor, k: Tensor, v: Tensor, sequences: Sequences, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend with FlashAttention, which reads K and V in place."""
    if not sequences.folded:
        result = torch.ops.aten._flash_attention_forward(
            q,
            k,
            v,
            sequences.query_starts,
            sequences.starts,
            sequences.num_queries,
            sequences.max_length,
            0.0,
            False,
            False,
            scale=scale,
            seqused_k=sequences.lengths,
        )
        return result[0], result[1].t()
    num, num_kv_heads, head_dim = len(sequences.lengths), k.shape[1], k.shape[2]
    group = q.shape[1] // num_kv_heads
    folded = q.reshape(num, -1, num_kv_heads, group, head_dim).transpose(1, 2)
    result = torch.ops.aten._flash_attention_forward(
        folded.reshape(num, -1, head_dim),
        k,
        v,
        sequences.query_starts,
        sequences.starts,
        1,
        sequences.max_length,
        0.0,
        False,
        False,
        scale=scale,
        seqused_k=sequences.lengths,
    )
    out = result[0].view(num, num_kv_heads, -1, group, head_dim).transpose(1, 2)
    lse = result[1].t().reshape(num, num_kv_heads, -1, group).transpose(1, 2)
    return out.reshape(q.shape), lse.reshape(q.shape[:2])


def attend_gathered(
    q: Tensor, k: Tensor, v: Tensor, sequences: Sequences, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend over copies of K and V, padded to the longest, for any device and dtype.

    Padding is masked, and repeats a live row because dead ones may hold NaN.
    """
    num, length = len(sequences.lengths), sequences.max_length
    num_kv_heads, head_dim = k.shape[1:]
    positions = torch.arange(length, device=q.device)
    live = positions < sequences.lengths[:, None]  # [num, length]
    rows = (torch.where(live, positions, 0) + sequences.starts[:-1, None]).flatten()
    keys, values = (
        x.index_select(0, rows).view(num, length, num_kv_heads, head_dim).transpose(1, 2)
        for x in (k, v)
    )
    mask = torch.zeros_like(live, dtype=q.dtype).masked_fill_(~live, -torch.inf)[:, None, None]
    group = q.shape[1] // num_kv_heads
    folded = q.reshape(num, -1, num_kv_heads, group, head_dim).transpose(1, 2)
    out, lse = attend_matmul(
        folded.reshape(num, num_kv_heads, -1, head_dim), keys, values, mask, scale
    )
    out = out.view(num, num_kv_heads, -1, group, head_dim).transpose(1, 2)
    lse = lse.view(num, num_kv_heads, -1, group).transpose(1, 2)
    return out.reshape(q.shape), lse.reshape(q.shape[:2])
