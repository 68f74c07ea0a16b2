# SPDX-License-Identifier: Apache-2.0
"""Flow matching by Euler steps from noise (t = 1) to data (t = 0).

openpi `models/pi0.py`, `sample_actions` and `posemb_sincos`: x <- x + dt * v(x, t), dt = -1 / S,
with the velocity trained towards noise - action.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def euler_times(num_steps: int) -> Tensor:
    """Flow times at which the velocity is taken: [num_steps] float64, 1 down to 1 / num_steps.

    Rounded to float32, as LeRobot and openpi hold them: the embedding multiplies a time by up to
    1,571, so the rounding alone moves actions by 4e-5.

    :raises ValueError: num_steps is below 1.
    """
    if num_steps < 1:
        raise ValueError(f'num_steps: expected at least 1, got {num_steps}')
    times = 1.0 - torch.arange(num_steps, dtype=torch.float64) / num_steps
    return times.to(torch.float32).to(torch.float64)


def time_embedding(
    times: Tensor, width: int, min_period: float = 4e-3, max_period: float = 4.0
) -> Tensor:
    """Sine then cosine of 2 pi t / period with log-spaced periods.

    Computed in float64, since a float32 phase is wrong by 4e-5, and rounded to float32.

    :param times: [num_steps] float64.
    :return: [num_steps, width] float32 on the CPU.
    """
    fraction = torch.linspace(0.0, 1.0, width // 2, dtype=torch.float64)
    period = min_period * (max_period / min_period) ** fraction
    phase = times[:, None] * (2.0 * math.pi / period)
    return torch.cat((phase.sin(), phase.cos()), 1).to(torch.float32)
