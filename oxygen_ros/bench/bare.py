# SPDX-License-Identifier: Apache-2.0
"""The limits of this machine: a bare 50 Hz loop, the rates of a product and of a copy."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from ..figures.ticks import spread_of

_PERIOD_NS = 20_000_000


def bare_loop(duration_s: float) -> dict[str, float]:
    """Sleep from one absolute deadline to the next; return how late the wake-ups were."""
    num_ticks = round(duration_s * 1e9 / _PERIOD_NS)
    lateness = np.empty(num_ticks)
    deadline_ns = time.monotonic_ns() + _PERIOD_NS
    for tick in range(num_ticks):
        time.sleep(max(0, deadline_ns - time.monotonic_ns()) * 1e-9)
        lateness[tick] = (time.monotonic_ns() - deadline_ns) * 1e-6
        deadline_ns += _PERIOD_NS
    late_ms = spread_of(lateness)
    return {'sd_ms': late_ms.sd, 'p99_ms': late_ms.p99, 'worst_ms': late_ms.worst}


def _best_seconds(function: Any, repeats: int = 30) -> float:
    best = float('inf')
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def machine_rates() -> dict[str, float]:
    """Return GFLOP/s of a large fp32 product and GB/s of a large copy, by one thread."""
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    source, target = torch.empty(16 << 20), torch.empty(16 << 20)
    return {
        'gemm_gflops': 2 * 512**3 / _best_seconds(lambda: a @ b) * 1e-9,
        'copy_gbs': 2 * source.nbytes / _best_seconds(lambda: target.copy_(source), 10) * 1e-9,
    }
