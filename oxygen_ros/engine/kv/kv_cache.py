# SPDX-License-Identifier: Apache-2.0
"""The one allocation of K/V storage, made at configure and never again."""

from __future__ import annotations

import torch
from torch import Tensor

from ..spec import ModelSpec


class KVCache:
    """`data[num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim]`, zero-filled."""

    def __init__(
        self,
        spec: ModelSpec,
        num_blocks: int,
        block_size: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        # Rows not yet written must hold finite numbers: masked scores are added, not selected.
        self.data = torch.zeros(
            (spec.num_layers, 2, num_blocks, block_size, spec.num_kv_heads, spec.head_dim),
            device=device,
            dtype=dtype,
        )
        self.bytes_per_block = self.data.element_size() * self.data[:, :, 0].numel()

    def prefix_view(self, layer: int, first_block: int, num_tokens: int) -> tuple[Tensor, Tensor]:
        """Return K and V of contiguous blocks: views [num_tokens, num_kv_heads, head_dim]."""
        num_blocks = -(-num_tokens // self.block_size)
        blocks = self.data[layer, :, first_block : first_block + num_blocks]
        rows = blocks.flatten(1, 2)[:, :num_tokens]
        return rows[0], rows[1]
