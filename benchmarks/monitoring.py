# SPDX-License-Identifier: Apache-2.0
"""What watching costs the control tick.

Under the full load, blocks of time without and with ~/latency, /diagnostics and the window take
turns in one run of the node. The window runs from the start; in the blocks without, it is stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
import functools
import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import psutil
from rich.console import Console

from oxygen_ros.bench.loads import isolate, LOADS, run_node
from oxygen_ros.bench.rows import ROWS
from oxygen_ros.bench.suite import environment
from oxygen_ros.errors import OxygenError

from .command_line import main, parser

_CONSOLE = Console()
_NO_DISPLAY = {'QT_QPA_PLATFORM': 'offscreen', 'QT_LOGGING_RULES': '*.warning=false'}
_ENOUGH = 12  # blocks without, for a spread that means something
_GATE = 'p99 of the watched ticks, within those of the blocks without'


class Window:
    """`oxygen monitor` without a display, in a process that is stopped and continued."""

    def __init__(self) -> None:
        self.cpu_s = 0.0  # while it watched
        self._process: subprocess.Popen[bytes] | None = None
        self._began_s = 0.0

    def __enter__(self) -> Window:
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'oxygen_ros.cli', 'monitor'],
            stdout=subprocess.DEVNULL,
            env={**os.environ, **_NO_DISPLAY},
            start_new_session=True,
        )
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

    def watch(self, is_watching: bool) -> None:
        """Continue it, or stop it."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise OxygenError(
                'window: expected `oxygen monitor` to run to the end, it ended with '
                f'status {self._process.returncode}'
            )
        self._process.send_signal(signal.SIGCONT if is_watching else signal.SIGSTOP)
        self._began_s = self._used_s()

    def count(self) -> None:
        """Add what it used since it was continued."""
        self.cpu_s += self._used_s() - self._began_s

    def _used_s(self) -> float:
        assert self._process is not None
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)


def run(duration_s: float = 10.0, num_pairs: int = _ENOUGH) -> dict[str, Any]:
    """Measure, print and return the figures; `gates` holds the verdict.

    :param duration_s: of one block.
    :param num_pairs: blocks without, and as many with.
    """
    from oxygen_ros.nodes.clients.load_client import Block, LoadPlan, LoadRun, run_blocks

    isolate()
    figures: dict[str, Any] = {'env': environment()}
    seconds = 2 * num_pairs * duration_s
    _CONSOLE.print(
        f'{num_pairs} blocks of {duration_s:g} s without and with, in turn: '
        f'{seconds / 60.0:.1f} minutes; load average before: '
        f'{figures["env"]["load_average"]:.2f}'
    )
    blocks: list[Block] = []

    with Window() as window:

        def done(block: Block) -> None:
            if block.is_watched:
                window.count()
            blocks.append(block)
            _CONSOLE.print(
                f'{len(blocks):3d} {"with   " if block.is_watched else "without"} p99 '
                f'{np.percentile(block.lateness_ms, 99.0):.3f} ms of {len(block.lateness_ms)} '
                f'ticks; {block.num_reports} reports, {block.num_statuses} statuses'
            )

        def client(plan: LoadPlan, check: Callable[[], None]) -> LoadRun:
            return run_blocks(plan, check, num_pairs, window.watch, done)

        run_node(ROWS['full'], LOADS[-1], duration_s, client=client)
    if not any(block.num_reports for block in blocks if block.is_watched):
        raise OxygenError('~/latency: expected reports while it is watched, got none')
    figures['monitoring'] = judge(
        [block.lateness_ms for block in blocks if not block.is_watched],
        [block.lateness_ms for block in blocks if block.is_watched],
    )
    figures['monitoring'] |= {
        'window_cpu_share': window.cpu_s / (num_pairs * duration_s),
        'block_s': duration_s,
        'reports': sum(block.num_reports for block in blocks if block.is_watched),
        'reports_without': sum(block.num_reports for block in blocks if not block.is_watched),
    }
    figures['gates'] = {_GATE: _gate(figures['monitoring'])}
    _print(figures['monitoring'], figures['gates'][_GATE]['holds'])
    return figures


def judge(
    without: Sequence[Sequence[float]],
    watched: Sequence[Sequence[float]],
) -> dict[str, Any]:
    """Return the p99 of each block and of all watched ticks, and the spread without (ms).

    :param without: lateness of the ticks of each block without watching.
    :param watched: the same of those with.
    """
    p99_without = [float(np.percentile(block, 99.0)) for block in without]
    p99_watched = [float(np.percentile(block, 99.0)) for block in watched]
    return {
        'p99_ms': float(np.percentile(np.concatenate(list(watched)), 99.0)),
        'p99_without_ms': float(np.percentile(np.concatenate(list(without)), 99.0)),
        'spread_ms': {'smallest': min(p99_without), 'largest': max(p99_without)},
        'blocks_above': sum(p99 > max(p99_without) for p99 in p99_watched),
        'blocks': {'without': p99_without, 'watched': p99_watched},
    }


def _gate(found: dict[str, Any]) -> dict[str, Any]:
    limit = found['spread_ms']['largest']
    return {'ours': found['p99_ms'], 'limit': limit, 'holds': found['p99_ms'] <= limit}


def _print(found: dict[str, Any], holds: bool) -> None:
    spread = found['spread_ms']
    _CONSOLE.print(
        f'p99 of all watched ticks {found["p99_ms"]:.3f} ms, of all others '
        f'{found["p99_without_ms"]:.3f} ms; blocks without: {spread["smallest"]:.3f} to '
        f'{spread["largest"]:.3f} ms; watched blocks above that: {found["blocks_above"]} of '
        f'{len(found["blocks"]["watched"])}; the window used '
        f'{100.0 * found["window_cpu_share"]:.0f} % of a core'
    )
    _CONSOLE.print(
        '[green]holds[/]: watching does not show in the tick'
        if holds
        else '[red]does not hold[/]: the tick is later while it is watched'
    )
    if (num_blocks := len(found['blocks']['without'])) < _ENOUGH:
        _CONSOLE.print(f'the spread of {num_blocks} blocks says little: {_ENOUGH} are the measure')


def _arguments() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument('--duration', type=_seconds, metavar='S', help='of a block (default: 10 s)')
    made.add_argument(
        '--quick', action='store_true', help='a look: two blocks of each kind, of 3 s'
    )
    return made.parse_args()


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0.0:
        raise argparse.ArgumentTypeError(f'expected a number above 0, got {text}')
    return seconds


def _main() -> int:
    args = _arguments()
    options: dict[str, Any] = {'duration_s': 3.0, 'num_pairs': 2} if args.quick else {}
    if args.duration is not None:
        options['duration_s'] = args.duration
    return main(args, functools.partial(run, **options))


if __name__ == '__main__':
    sys.exit(_main())
