# SPDX-License-Identifier: Apache-2.0
"""The exact merge of two attention results over disjoint keys by their log-sum-exp."""

from __future__ import annotations

import torch
from torch import Tensor


def merge_out(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> Tensor:
    """Merge the outputs alone.

    A side that saw no key has log-sum-exp -inf and a finite output, and then leaves the other one
    unchanged, bit by bit. At least one side must have seen a key.

    :param out_a: [..., head_dim]; half precision is merged in float32.
    :param lse_a: [...], natural logarithm; the same for b.
    :return: [..., head_dim] in the dtype of the outputs.
    """
    # exp(a) / (exp(a) + exp(b)), without an overflow and without the sum itself
    weight = lse_a.sub(lse_b).sigmoid_().unsqueeze_(-1)
    if out_a.dtype == weight.dtype:
        return torch.lerp(out_b, out_a, weight)
    merged = torch.lerp(out_b.to(weight.dtype), out_a.to(weight.dtype), weight)
    return merged.to(out_a.dtype)
