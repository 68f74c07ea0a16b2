# SPDX-License-Identifier: Apache-2.0
"""The figures of `oxygen bench` as tables for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from .gates import Gate

_FINE_PRINT = (
    'lateness: from the absolute deadline to the return of publish() in the node, on the '
    'steady clock; on time: within 2 ms, not held, from an observation of at most 400 ms.',
    'wait: from the moment at which an action was due, and the one before it done, to the start '
    'of its pass. First token: at '
    'the client, goal sent to first feedback. Scene update: request to publication.',
    'ingest: from the callback to the finished frame. Uncounted: frames sent between the first '
    'and the last that came, and neither received nor superseded.',
    'Warm-up left out: the passes before configure ends, the first second after activation, the '
    'first window of each row of the cycle. Seeds: weights 0, action noise 0, images by frame and '
    'camera, text by request. One torch thread. SCHED_FIFO 20 for the tick and SCHED_RR 1 for '
    'the rest of its process, where permitted.',
    'cycle: wall time of windows of 10 frames, started empty and drained, over 10, rows in turn.',
)


def _number(value: float | None, digits: int = 2) -> str:
    return '-' if value is None else f'{value:.{digits}f}'


def print_figures(console: Console, figures: dict[str, Any], gates: list[Gate]) -> None:
    """Print every table, the verdict last, and what is inside each timer."""
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
    console.print(tick)
    cycles = Table(
        title='three-task cycle, ms a frame (encode, prefill, action pass, two texts of 30 tokens)'
    )
    for column in ('row', 'p50', 'p99'):
        cycles.add_column(column, justify='right')
    for row, figure in figures['cycle_ms'].items():
        cycles.add_row(row, _number(figure['p50'], 1), _number(figure['p99'], 1))
    console.print(cycles)
    _print_lines(console, figures)
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
    console.print(verdict)
    for line in _FINE_PRINT:
        console.print(line, style='dim')


def _print_lines(console: Console, figures: dict[str, Any]) -> None:
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
        f'+ {ingest["waiting"]} waiting '
        f'+ {ingest["refused"]} refused, {ingest["missed"]} more superseded in the middleware; '
        f'receipt to frame {_number(ingest["ms"]["p50"])} ms p50, '
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
        console.print(line)
