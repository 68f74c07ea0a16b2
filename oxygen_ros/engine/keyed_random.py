# SPDX-License-Identifier: Apache-2.0
"""Random numbers that depend on a key alone, never on what else ran in between.

Randomness is counter-based: SplitMix64 (Steele et al. 2014) of a seed and a step.
"""

from __future__ import annotations

import torch
from torch import Tensor

_MASK = (1 << 64) - 1


def keyed_seed(*key: int) -> int:
    """Mix integers into one 64-bit seed."""
    state = 0
    for value in key:
        state = (state + (value & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        state = mixed ^ (mixed >> 31)
    return state


def keyed_uniform(*key: int) -> float:
    """Return a number in [0, 1) that depends on the key alone."""
    return (keyed_seed(*key) >> 11) * 2.0**-53


def keyed_noise(shape: tuple[int, ...], *key: int) -> Tensor:
    """Return standard normal noise on the CPU that depends on the key alone: `shape`, float32."""
    generator = torch.Generator().manual_seed(keyed_seed(*key) >> 1)
    return torch.randn(shape, generator=generator)
