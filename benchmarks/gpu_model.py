# SPDX-License-Identifier: Apache-2.0
"""What one model does on a GPU in the engine: stages, memory, the three-task cycle, waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from oxygen_ros.bench.cycle import cycle_times
from oxygen_ros.bench.kv import peak
from oxygen_ros.bench.workbench import SyntheticSensors, Workbench
from oxygen_ros.engine.config import EngineConfig
from oxygen_ros.engine.model import VLAModel
from oxygen_ros.engine.scheduling.timeline import EventKind
from oxygen_ros.engine.scheduling.work import UnitKind
from oxygen_ros.models.boards import Board
from oxygen_ros.models.plan import Plan, WeightKind, Workload
from oxygen_ros.models.vla_config import VLAConfig
from oxygen_ros.runtime.warm_up import warm_up
from oxygen_ros.runtime.work_clock import work_clock

from .batching import decode
from .unit_log import spread_ms, UnitLog

BATCHES = (1, 4, 8)
_CYCLE = ('isolated_fifo', 'full')


def stages(model: VLAModel, num_frames: int) -> dict[str, Any]:
    """Run frames with nothing else to do; return ms of vision, prefill, step and pass.

    As the engine runs them: it waits for the device after each unit.
    """
    log = UnitLog(model.spec.num_layers)
    bench = _bench(
        model,
        log,
        SyntheticSensors(model.spec.num_cameras, model.spec.action_dim, period_ns=0),
        observation_period_s=0.0,
    )
    bench.run_until(lambda: len(bench.chunks) >= num_frames)
    passes = [chunk.pass_ended_ns - chunk.pass_started_ns for chunk in bench.chunks]
    units, skip = log.units_ns, num_frames // 4
    steps = model.spec.num_denoising_steps
    return {
        'ingest': spread_ms(units[UnitKind.INGEST], skip),
        'vision': spread_ms(units[UnitKind.VISION], skip),
        'prefill': spread_ms(log.prefills_ns, skip),
        'denoise': spread_ms(units[UnitKind.DENOISE], skip * steps),
        'pass': spread_ms(passes, skip),
        'prefix_tokens': bench.engine.manager.live_prefixes()[-1].num_tokens,
    }


def decode_steps(model: VLAModel, num_tokens: int) -> dict[str, Any]:
    """Decode together what one frame's requests ask; return ms of a step and tokens/s."""
    figures = {}
    for batch in BATCHES:
        log = UnitLog(model.spec.num_layers)
        rate = decode(model, batch, num_tokens, log)['tokens_per_s']
        figures[str(batch)] = spread_ms(log.steps_ns[batch], 4) | {'tokens_per_s': rate}
    return figures


def kv_memory(model: VLAModel) -> dict[str, Any]:
    """Return the most bytes of K/V that three tasks on one frame hold, counted by addresses."""
    isolated, _ = peak(model, 'isolated')
    shared, private = peak(model, 'shared')
    return {
        'isolated': isolated,
        'shared': shared,
        'reduction': 1.0 - shared / isolated,
        'private_tokens': private,
    }


def cycle(model: VLAModel, num_windows: int) -> dict[str, float]:
    """Return ms a frame of the three-task cycle, isolated and in order against all together."""
    _, times = cycle_times(model, num_windows, _CYCLE)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    return medians | {'speedup': medians['isolated_fifo'] / medians['full']}


def loaded(model: VLAModel, duration_s: float) -> dict[str, Any]:
    """Run four dialogues without end beside frames at 10 Hz; return rates and waits.

    A wait is the time from a pass's due time, and the end of the pass before it, to its start.
    """
    log = UnitLog(model.spec.num_layers)
    sensors = SyntheticSensors(model.spec.num_cameras, model.spec.action_dim)
    bench = _bench(model, log, sensors)
    engine = bench.engine
    warm_up_s = warm_up(engine, sensors.cameras, model.spec.action_dim)

    def keep_four() -> None:
        for _ in range(4 - engine.text.num_live):
            bench.ask(max_tokens=48)

    bench.on_poll = keep_four
    start_ns = bench.clock.now_ns()
    engine.action.align(start_ns)
    while bench.clock.now_ns() - start_ns < duration_s * 1e9:
        bench.cycle()
    seconds = (bench.clock.now_ns() - start_ns) * 1e-9
    chunks = bench.chunks
    slices = np.concatenate(
        [
            engine.timeline.durations_ns(kind, start_ns)
            for kind in (EventKind.PREFIX, EventKind.DIALOGUE)
        ]
    )
    return {
        'wait': spread_ms(engine.timeline.durations_ns(EventKind.ACTION_WAIT, start_ns)),
        'slice': spread_ms(slices),
        'pass': spread_ms([chunk.pass_ended_ns - chunk.pass_started_ns for chunk in chunks]),
        'chunks_per_s': len(chunks) / seconds,
        'actions_per_s': len(chunks) * model.spec.action_horizon / seconds,
        'text_tokens_per_s': engine.counters.text_tokens / seconds,
        'execution': getattr(model, 'execution', 'eager'),
        'graphs': getattr(model, 'num_graphs', 0),
        'warm_up_s': warm_up_s,
    }


def measure(
    make: Callable[[], VLAModel],
    keep: Callable[[dict[str, Any]], None],
    *,
    frames: int = 40,
    tokens: int = 64,
    windows: int = 1,
    loaded_s: float = 5.0,
) -> dict[str, Any]:
    """Return all of it.

    :param make: returns the model for one engine: captured graphs belong to one.
    :param keep: called with the figures so far after each part.
    """
    parts: dict[str, Callable[[VLAModel], Any]] = {
        'stages': lambda model: stages(model, frames),
        'decode': lambda model: decode_steps(model, tokens),
        'loaded': lambda model: loaded(model, loaded_s),
        'kv': kv_memory,
        'cycle_ms': lambda model: cycle(model, windows),
    }
    figures: dict[str, Any] = {}
    for name, part in parts.items():
        figures[name] = part(make())
        keep(figures)
    return figures


def floors_ms(config: VLAConfig, prefix_tokens: int, rates: dict[str, float]) -> dict[str, float]:
    """Return the least ms of each stage in bf16: operations over the rate of a large product, or
    weights and K/V over the rate of a large copy, whichever is longer.
    """
    board = Board('this one', 1e3, rates['copy_gbs'], rates['gemm_tflops'])
    visual = len(config.cameras) * config.vision.num_tokens
    found = {}
    for batch in BATCHES:
        work = Workload(
            num_cameras=len(config.cameras),
            prompt_tokens=prefix_tokens - visual,
            num_text_tasks=batch,
            text_tokens=64,
        )
        plan = Plan(config, work, board, WeightKind.BF16)
        found[f'decode.{batch}'] = plan.times.text_step * 1e3
    times = plan.times
    return found | {
        'vision': times.vision / work.num_cameras * 1e3,
        'prefill': times.prefill * 1e3,
        'denoise': times.denoise_step * 1e3,
        'pass': times.action_pass * 1e3,
        'parameters': float(plan.num_parameters),
        'weight_bytes': plan.memory.weights,
    }


def device_rates() -> dict[str, float]:
    """Return TFLOP/s of a large bf16 product of random numbers, and GB/s of a large copy, bytes
    read and written.
    """
    a = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)
    source = torch.randn(1 << 28, device='cuda')  # several times any cache
    target = torch.empty_like(source)
    return {
        'gemm_tflops': 2 * 8192**3 / _seconds(lambda: a @ a) * 1e-12,
        'copy_gbs': 2 * source.nbytes / _seconds(lambda: target.copy_(source)) * 1e-9,
    }


def _seconds(function: Callable[[], object], repeats: int = 10) -> float:
    """Return the median time of an operation by the device's own clock."""
    events = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(repeats + 2)]
    for begin, end in events:
        begin.record()
        function()
        end.record()
    torch.cuda.synchronize()
    return float(np.median([begin.elapsed_time(end) for begin, end in events[2:]])) * 1e-3


def _bench(model: VLAModel, log: UnitLog, sensors: SyntheticSensors, **config: Any) -> Workbench:
    return Workbench(model, EngineConfig(**config), sensors, work_clock(model.device), log)
