# SPDX-License-Identifier: Apache-2.0
"""Attention over one segment of K/V with its log-sum-exp: the best kernel per device and dtype."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

SegmentKernel = Callable[[Tensor, Tensor, Tensor, Tensor | None, float], tuple[Tensor, Tensor]]
"""`kernel(q, k, v, mask, scale) -> (out, lse)`.

K and V may be strided, and without a mask, as a prefix always is, they are never copied.
q [batch, num_kv_heads, rows, head_dim], k and v [batch, num_kv_heads, length, head_dim],
mask additive [batch or 1, 1, rows, length] or None, out as q, lse [batch, num_kv_heads, rows] in
float32 (float64 for float64).
"""


def segment_kernel(device: torch.device, dtype: torch.dtype, head_dim: int) -> SegmentKernel:
    """Choose the kernel for a store."""
    if device.type == 'cpu':
        return attend_cpu
    if device.type == 'cuda' and head_dim % 8 == 0 and head_dim <= 256:
        if dtype == torch.bfloat16:
            return attend_cuda_flash
        if dtype in (torch.float16, torch.float32):
            return attend_cuda_efficient
    return attend_matmul


def attend_cpu(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend with the flash kernel for CPUs."""
    out, lse = torch._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, attn_mask=mask, scale=scale
    )
    return out, lse


def attend_cuda_flash(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend with FlashAttention: half precision on Ampere and later, no mask."""
    if mask is not None:
        return attend_matmul(q, k, v, mask, scale)
    result = torch._scaled_dot_product_flash_attention(q, k, v, scale=scale)
    return result[0], result[1][..., : q.shape[2]]


def attend_cuda_efficient(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend with the memory-efficient kernel; its masks would have to be padded."""
    if mask is not None:
        return attend_matmul(q, k, v, mask, scale)
    result = torch._scaled_dot_product_efficient_attention(q, k, v, None, True, scale=scale)
    return result[0], result[1][..., : q.shape[2]]  # its lse is padded to a multiple of 32


def attend_matmul(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend with two products and an explicit softmax, for any device and dtype.

    Half-precision K and V are widened where there is a mask: those are own pages, and short. A
    prefix never is, at the price of rounded scores.
    """
    dtype, out_dtype = torch.promote_types(q.dtype, torch.float32), q.dtype
    if mask is not None:
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    scores = torch.matmul(q, k.transpose(-2, -1)).to(dtype).mul_(scale)
    if mask is not None:
        scores += mask
    lse = torch.logsumexp(scores, dim=-1)
    weights = scores.sub_(lse.unsqueeze(-1)).exp_()
    return torch.matmul(weights.to(v.dtype), v).to(out_dtype), lse
