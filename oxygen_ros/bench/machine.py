# SPDX-License-Identifier: Apache-2.0
"""What this machine does at best: a bare 50 Hz loop, a large product, a large copy, and the floors
that follow for the stages of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import time
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from ..engine.config import EngineConfig
from ..engine.model import VLAModel
from ..figures.ticks import spread_of
from .workbench import MS, SyntheticSensors, Workbench

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


def _best_seconds(function: Callable[[], object], repeats: int = 30) -> float:
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


def action_floor(model: VLAModel, rates: dict[str, float]) -> dict[str, Any]:
    """Count one action pass; return its FLOPs, the weights it reads, and its floor in ms.

    The floor is the larger of FLOPs over the rate of a large product and bytes over the rate of a
    copy.
    """
    sensors = SyntheticSensors(
        model.spec.num_cameras, model.spec.action_dim, 100 * MS, num_observations=1
    )
    bench = Workbench(model, EngineConfig(), sensors)
    bench.run_until(lambda: bool(bench.chunks))
    state = sensors.state(bench.clock.now_ns())
    with torch.inference_mode():
        flops = count_flop(lambda: bench.engine.action.run(state))
    prefix = bench.engine.action.ready
    assert prefix is not None
    tokens = (
        prefix.context.prefix.num_tokens
        + prefix.context.num_tokens
        + model.spec.action_suffix_tokens
    )
    kv_bytes = tokens * model.spec.kv_bytes_per_token() * model.spec.num_denoising_steps
    floor_ms = max(flops / rates['gemm_gflops'], kv_bytes / rates['copy_gbs']) * 1e-6
    return {
        'flops': int(flops),
        'kv_bytes_read': int(kv_bytes),
        'floor_ms': float(np.float64(floor_ms)),
    }
