# SPDX-License-Identifier: Apache-2.0
"""Counting the floating-point operations of a stage, every product and attention included."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.utils.flop_counter import FlopCounterMode


def count_flop(stage: Callable[[], object]) -> int:
    """Count a stage's operations, also of two kernels that torch leaves out."""

    def attention(q: Sequence[int], k: Sequence[int], *_: object, **__: object) -> int:
        batch, heads, rows, head_dim = q
        return 4 * batch * heads * rows * k[2] * head_dim

    def product(_: Sequence[int], a: Sequence[int], b: Sequence[int], **__: object) -> int:
        return 2 * a[0] * a[1] * b[1]

    aten = torch.ops.aten
    counter = FlopCounterMode(
        display=False,
        custom_mapping={
            aten._scaled_dot_product_flash_attention_for_cpu: attention,
            aten.addmm_: product,
        },
    )
    with counter, torch.inference_mode():
        stage()
    return counter.get_total_flops()
