# SPDX-License-Identifier: Apache-2.0
"""The arithmetic floor of the action pass on this machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..engine.config import EngineConfig
from ..engine.model import VLAModel
from .flop import count_flop
from .workbench import MS, SyntheticSensors, Workbench


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
