"""`oxygen bench`: all rows and loads side by side in one run."""

from __future__ import annotations

import os
from pathlib import Path
import platform
from typing import Any

from rich.console import Console
from rich.table import Table
import torch

from ..engine.memory_report import reduction_limit
from ..models.registry import create_model
from . import bare, cycle, floor, kv
from .gates import Gate, judge
from .loads import isolate, Load, LOADS, run_node
from .rows import ROWS

MICRO_SLICE_MS = 3.5
_KV_TOKENS = 1024
_CONSOLE = Console()
_FINE_PRINT = (
    'lateness: from the absolute deadline to the return of publish() in the node, on the '
    'steady clock; on time: within 2 ms, not held, from an observation of at most 400 ms.',
    'wait: from the moment at which an action was due to the start of its pass. First token: at '
    'the client, goal sent to first feedback. Scene update: request to publication.',
    'ingest: from the callback to the finished frame. Lost: frames sent between the first and the '
    'last that came, and neither came nor were superseded.',
    'Warm-up left out: the passes before configure ends, the first second after activation, the '
    'first window of each row of the cycle. Seeds: weights 0, action noise 0, images by frame and '
    'camera, text by request. One torch thread. SCHED_FIFO 20 for the tick where permitted.',
    'cycle: wall time of windows of 10 frames, started empty and drained, over 10, rows in turn.',
)


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


def run(quick: bool) -> dict[str, Any]:
    """Measure, print and return the figures; `gates` holds the verdict."""
    isolate()
    duration_s = 4.0 if quick else 8.0
    num_rounds = 1 if quick else 3
    figures: dict[str, Any] = {'env': environment()}
    _say('machine: product, copy, bare 50 Hz loop')
    rates = bare.machine_rates()
    figures['env'] |= rates
    figures['tick'] = {'bare': bare.bare_loop(3.0 if quick else 10.0)}
    _say('KV memory')
    figures['kv'] = _kv()
    _say('three-task cycle, without ROS')
    model = create_model('tiny')
    figures |= cycle.measure(model, 2 if quick else 20)
    full_rounds = []
    for load in LOADS if not quick else LOADS[-1:]:
        figures['tick'][load.name] = {}
        for name in _rows(quick):
            last = load is LOADS[-1]
            judged = last and name == 'full'
            seconds = 2 * duration_s if judged and not quick else duration_s
            rounds = [_run(name, load, seconds) for _ in range(num_rounds if judged else 1)]
            figures['tick'][load.name][name] = rounds[0]['tick']
            if name == 'full':
                figures.setdefault('dialogue', {})[load.name] = rounds[0]['dialogue']
            if judged:
                full_rounds = rounds
                figures |= {key: rounds[0][key] for key in ('preempt', 'action', 'ingest')}
    separate_rounds = [
        _run('full', LOADS[-1], duration_s, separate=True) for _ in range(num_rounds)
    ]
    figures['tick']['separate_fifo'] = separate_rounds[0]['tick']
    figures['rounds'] = {'full': full_rounds, 'separate_fifo': separate_rounds}
    if not quick:
        _say('chunked, on a prefix of 1,024 visual tokens')
        figures['chunked_1024'] = run_node(
            ROWS['full'],
            LOADS[2],
            duration_s,
            {'action.mode': 'chunked', 'model.image_px': 224, 'engine.observation_period_s': 0.2},
        )
    _finish_action(figures, model, rates)
    gates = judge(figures, full_rounds, separate_rounds, MICRO_SLICE_MS, LOADS[-1].scene_period_s)
    figures['gates'] = {
        gate.name: {'ours': gate.ours, 'limit': gate.limit, 'holds': gate.holds} for gate in gates
    }
    _print(figures, gates)
    return figures


def _rows(quick: bool) -> tuple[str, ...]:
    names = ('full', 'unmanaged')
    return (
        names
        if quick
        else (*names, 'isolated_fifo', 'shared_fifo', 'shared_batched', 'two_process')
    )


def _run(name: str, load: Load, duration_s: float, separate: bool = False) -> dict[str, Any]:
    where = ', tick in a process of its own' if separate else ''
    _say(f'{load.name}: {name}{where}, {duration_s:.0f} s')
    if name == 'two_process':
        # Action alone beside language alone, both on one core.
        alone = Load(load.name, 0, 0.0, load.width, load.height, load.rate_hz)
        return run_node(
            ROWS['full'],
            alone,
            duration_s,
            cpu=0,
            beside='oxygen_ros.bench.language_process' if load.num_dialogues else None,
        )
    more: dict[str, object] = {'tick.process': 'separate'} if separate else {}
    return run_node(ROWS[name], load, duration_s, more)


def _kv() -> dict[str, Any]:
    isolated, _ = kv.measure_peak(_KV_TOKENS, 'isolated')
    shared, private = kv.measure_peak(_KV_TOKENS, 'shared')
    return {
        'bytes': {'isolated': isolated, 'shared': shared},
        'reduction': 1.0 - shared / isolated,
        'limit': reduction_limit(_KV_TOKENS, private),
        'visual_tokens': _KV_TOKENS,
    }


def _finish_action(figures: dict[str, Any], model: Any, rates: dict[str, float]) -> None:
    action = figures['action']
    action['actions_per_s'] = action['chunks_per_s'] * model.spec.action_horizon
    action |= floor.action_floor(model, rates)
    action['over_floor'] = action['pass_ms']['p50'] / action['floor_ms']


def _say(line: str) -> None:
    _CONSOLE.print(f'{line} ...', style='dim')


def _number(value: float | None, digits: int = 2) -> str:
    return '-' if value is None else f'{value:.{digits}f}'


def _print(figures: dict[str, Any], gates: list[Gate]) -> None:
    tick = Table(
        title='control tick at 50 Hz: lateness of publication after the absolute deadline'
    )
    for column in (
        'load',
        'row',
        'sd ms',
        'p99 ms',
        'worst ms',
        'on time %',
        'held',
        'age p50/p99 ms',
    ):
        tick.add_column(column, justify='left' if column in ('load', 'row') else 'right')
    ticks = dict(figures['tick'])
    if 'chunked_1024' in figures:
        ticks['chunked, 1,024 visual tokens'] = figures['chunked_1024']['tick']
    for load, rows in ticks.items():
        for row, figure in ({'': rows} if 'sd_ms' in rows else rows).items():
            on_time = figure.get('on_time')
            age = figure.get('age_ms', {'p50': None, 'p99': None})
            tick.add_row(
                load,
                row,
                _number(figure['sd_ms']),
                _number(figure['p99_ms']),
                _number(figure['worst_ms'], 1),
                '-' if on_time is None else f'{100 * on_time:.1f}',
                str(figure.get('held', '-')),
                f'{_number(age["p50"], 0)}/{_number(age["p99"], 0)}',
            )
    _CONSOLE.print(tick)
    cycles = Table(
        title='three-task cycle, ms a frame (encode, prefill, action pass, two texts of 30 tokens)'
    )
    for column in ('row', 'p50', 'p99'):
        cycles.add_column(column, justify='right')
    for row, figure in figures['cycle_ms'].items():
        cycles.add_row(row, _number(figure['p50'], 1), _number(figure['p99'], 1))
    _CONSOLE.print(cycles)
    _print_lines(figures)
    verdict = Table(title='claimed, ours, limit')
    for column in ('', 'claimed', 'ours', 'limit', ''):
        verdict.add_column(column, justify='right')
    for gate in gates:
        verdict.add_row(
            gate.name,
            gate.claimed,
            _number(gate.ours, 3),
            f'{gate.limit:.3f} {gate.unit}',
            '[green]holds[/]' if gate.holds else '[red]does not hold[/]',
        )
    _CONSOLE.print(verdict)
    for line in _FINE_PRINT:
        _CONSOLE.print(line, style='dim')


def _print_lines(figures: dict[str, Any]) -> None:
    action, cycle_, ingest = figures['action'], figures['cycle'], figures['ingest']
    lines = [
        f'cycle: {cycle_["speedup"]:.2f} times isolated+fifo, predicted from stage times '
        f'{cycle_["predicted_speedup"]:.2f}, FLOPs {cycle_["flop_ratio"]:.2f}; '
        f'{cycle_["frames_in_flight"]:.1f} frames in flight, '
        f'{cycle_["rows_per_step"]:.1f} rows a step',
        f'action: {action["chunks_per_s"]:.1f} chunks/s, '
        f'{action["actions_per_s"]:.0f} actions/s (x horizon); pass '
        f'{_number(action["pass_ms"]["p50"])} ms p50, {_number(action["pass_ms"]["p99"])} p99, '
        f'{action["over_floor"]:.1f} times its floor of {action["floor_ms"]:.2f} ms',
        f'ingest: {ingest["frames_in"]} frames in = {ingest["frames_out"]} out '
        f'+ {ingest["superseded"]} superseded '
        f'+ {ingest["refused"]} refused; receipt to frame {_number(ingest["ms"]["p50"])} ms p50, '
        f'{_number(ingest["ms"]["p99"])} p99',
    ]
    for load, figure in figures['dialogue'].items():
        if figure['first_tokens']:
            ttft = figure['ttft_ms']
            lines.append(
                f'dialogue, {load}: first token {_number(ttft["p50"], 0)} ms p50, '
                f'{_number(ttft["p99"], 0)} p99 at the client, '
                f'{figure["tokens_per_s"]:.0f} tokens/s'
            )
    for line in lines:
        _CONSOLE.print(line)
