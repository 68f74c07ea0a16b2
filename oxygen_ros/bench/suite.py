# SPDX-License-Identifier: Apache-2.0
"""`oxygen bench`: all rows and loads side by side in one run."""

from __future__ import annotations

import os
from pathlib import Path
import platform
from typing import Any

from rich.console import Console
import torch

from ..engine.kv.memory_report import reduction_limit
from ..figures.latency_fields import kv_reduction
from . import cycle, kv
from .gates import judge
from .loads import isolate, Load, LOADS, run_node
from .machine import action_floor, bare_loop, machine_rates
from .rows import ROWS
from .stages import measure as measure_stages
from .subject import Subject, TINY
from .tables import print_figures

_KV_TOKENS = 1024
_CONSOLE = Console()


def environment() -> dict[str, Any]:
    """Return what the figures were measured on."""
    model = 'unknown'
    for line in Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            model = line.partition(':')[2].strip()
            break
    return {
        'python': platform.python_version(),
        'torch': torch.__version__,
        'cpu': model,
        'cores': os.cpu_count(),
        'torch_threads': torch.get_num_threads(),
        'load_average': os.getloadavg()[0],
    }


def run(quick: bool, subject: Subject = TINY) -> dict[str, Any]:
    """Measure, print and return the figures; `gates` holds the verdict.

    The limits are those of the model tiny; KV memory is always that of its 1,024 visual tokens.
    """
    isolate()
    duration_s = 4.0 if quick else 8.0
    num_rounds = 1 if quick else 3
    figures: dict[str, Any] = {'env': environment() | {'model': subject.model}}
    _say('machine: product, copy, bare 50 Hz loop')
    rates = machine_rates()
    figures['env'] |= rates
    figures['tick'] = {'bare': bare_loop(3.0 if quick else 10.0)}
    _say('KV memory')
    figures['kv'] = _kv()
    _say('three-task cycle, without ROS')
    model = subject.create()
    figures |= cycle.measure(model, 2 if quick else 20)
    full_rounds = []
    for load in LOADS if not quick else LOADS[-1:]:
        figures['tick'][load.name] = {}
        for name in _rows(quick):
            last = load is LOADS[-1]
            judged = last and name == 'full'
            seconds = 2 * duration_s if judged and not quick else duration_s
            rounds = [
                _run(subject, name, load, seconds) for _ in range(num_rounds if judged else 1)
            ]
            figures['tick'][load.name][name] = rounds[0]['tick']
            if name == 'full':
                figures.setdefault('dialogue', {})[load.name] = rounds[0]['dialogue']
            if judged:
                full_rounds = rounds
                figures |= {key: rounds[0][key] for key in ('preempt', 'action', 'ingest')}
    separate_rounds = [
        _run(subject, 'full', LOADS[-1], duration_s, separate=True) for _ in range(num_rounds)
    ]
    figures['tick']['separate_fifo'] = separate_rounds[0]['tick']
    figures['rounds'] = {'full': full_rounds, 'separate_fifo': separate_rounds}
    if not quick and not subject.is_checkpoint:
        _say('chunked, on a prefix of 1,024 visual tokens')
        figures['chunked_1024'] = run_node(
            ROWS['full'],
            LOADS[2],
            duration_s,
            {'action.mode': 'chunked', 'model.image_px': 224, 'engine.observation_period_s': 0.2},
        )
    if subject.is_checkpoint:
        figures |= measure_stages(Path(subject.model))
    _finish_action(figures, model, rates)
    gates = judge(figures, full_rounds, separate_rounds, LOADS[-1].scene_period_s)
    figures['gates'] = {
        gate.name: {'ours': gate.ours, 'limit': gate.limit, 'holds': gate.holds} for gate in gates
    }
    print_figures(_CONSOLE, figures, gates)
    return figures


def _rows(quick: bool) -> tuple[str, ...]:
    names = ('full', 'unmanaged')
    return (
        names
        if quick
        else (*names, 'isolated_fifo', 'shared_fifo', 'shared_batched', 'two_process')
    )


def _run(
    subject: Subject, name: str, load: Load, duration_s: float, separate: bool = False
) -> dict[str, Any]:
    where = ', tick in a process of its own' if separate else ''
    _say(f'{load.name}: {name}{where}, {duration_s:.0f} s')
    if name == 'two_process':
        # Action alone beside language alone, both on one core. Above the language process the
        # node would leave it nothing.
        alone = Load(load.name, 0, 0.0, load.width, load.height, load.rate_hz)
        return run_node(
            ROWS['full'],
            alone,
            duration_s,
            {'realtime.process_priority': 0},
            cpu=0,
            beside='oxygen_ros.bench.language_process' if load.num_dialogues else None,
            subject=subject,
        )
    more: dict[str, object] = {'tick.process': 'separate'} if separate else {}
    return run_node(ROWS[name], load, duration_s, more, subject=subject)


def _kv() -> dict[str, Any]:
    isolated, _ = kv.measure_peak(_KV_TOKENS, 'isolated')
    shared, private = kv.measure_peak(_KV_TOKENS, 'shared')
    return {
        'bytes': {'isolated': isolated, 'shared': shared},
        'reduction': float(kv_reduction(shared, isolated)),
        'limit': reduction_limit(_KV_TOKENS, private),
        'visual_tokens': _KV_TOKENS,
    }


def _finish_action(figures: dict[str, Any], model: Any, rates: dict[str, float]) -> None:
    action = figures['action']
    action['actions_per_s'] = action['chunks_per_s'] * model.spec.action_horizon
    action |= action_floor(model, rates)
    action['over_floor'] = action['pass_ms']['p50'] / action['floor_ms']


def _say(line: str) -> None:
    _CONSOLE.print(f'{line} ...', style='dim')
