# SPDX-License-Identifier: Apache-2.0
"""`oxygen top`: the figures of ~/latency in a terminal, for a robot reached by ssh."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
import math
import os
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..errors import OxygenError
from ..figures.thresholds import Level
from .figures import BY_FIELD, FIGURES, milliseconds, NOTHING
from .model import DEFAULT_TOPIC, Feed, Float64Array, MonitorModel, Span

if TYPE_CHECKING:
    from rclpy.executors import Executor

_REDRAW_S = 0.25
_STYLES = {Level.UNKNOWN: 'dim', Level.GOOD: '', Level.WARN: 'yellow', Level.BAD: 'bold red'}
_FEED_STYLES = {Feed.WAITING: 'dim', Feed.LIVE: 'green', Feed.STALE: 'bold red'}
_BLOCKS = '▁▂▃▄▅▆▇█'
_GRAPH_WIDTH = 24
_LINE_FIELDS = (
    'on_time_ratio',
    'not_on_time',
    'jitter_sd_ms',
    'jitter_p99_ms',
    'action_pass_p99_ms',
    'action_wait_p99_ms',
    'ttft_ms',
    'tokens_per_s',
    'chunks_per_s',
    'kv_reduction',
    'camera_age_max_ms',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        '--topic',
        default=DEFAULT_TOPIC,
        help='topic of oxygen_ros/msg/LatencyReport (default: %(default)s)',
    )
    parser.add_argument(
        '--once',
        action='store_true',
        help='print the first report that comes, as a table, and end',
    )
    parser.add_argument(
        '--timeout',
        type=float,
        default=10.0,
        metavar='S',
        help='with --once: longest wait for it (default: %(default)s)',
    )
    parser.add_argument(
        '--period',
        type=float,
        default=1.0,
        metavar='S',
        help='into a pipe: seconds between two lines (default: %(default)s)',
    )


def run(args: argparse.Namespace) -> int:
    """Show the figures until Ctrl-C; return the exit status."""
    for name in ('timeout', 'period'):
        if not 0.0 < getattr(args, name) < float('inf'):
            raise OxygenError(f'--{name}: expected a number above 0, got {getattr(args, name)}')
    from ..nodes.middleware.bounded_end import END_TIMEOUT_S, end_within
    from ..nodes.middleware.transport import use_large_data_transport

    use_large_data_transport()
    import rclpy
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    from .source import LatencySource

    model = MonitorModel()
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(f'oxygen_top_{os.getpid()}')
    try:
        source = LatencySource(node, model.history.add, model.history.add_camera_ages)
        source.follow(args.topic)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        console = Console()
        if args.once:
            return _once(model, executor, console, args.topic, args.timeout)
        if console.is_terminal:
            _live(model, executor, console, args.topic)
        else:
            _lines(model, executor, args.period)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass  # the way it is meant to end
    except BrokenPipeError:
        # Whoever read has ended, as in `oxygen top | head`; Python must not try to flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        with end_within(END_TIMEOUT_S, 0 if sys.exc_info()[0] is None else 1):
            node.destroy_node()
            rclpy.try_shutdown()
    return 0


def table(model: MonitorModel, topic: str, course: bool = True) -> Group:
    """Return everything that is known.

    :param course: show the worst and the course of the model's window as well.
    """
    span = model.view()
    feed = model.history.feed()
    head = Text.assemble(
        (topic, 'bold'), '  ', ('● ', _FEED_STYLES[feed]), (model.status(), _FEED_STYLES[feed])
    )
    columns = Table(box=None, pad_edge=False, header_style='dim')
    columns.add_column('')
    columns.add_column('now', justify='right', min_width=10)
    if course:
        columns.add_column(f'worst in {span.seconds:g} s', justify='right', min_width=10)
        columns.add_column(f'last {span.seconds:g} s', no_wrap=True)
    for figure in FIGURES:
        if span.newest is None:
            columns.add_row(figure.label, NOTHING)
            continue
        values = figure.values(span.rows)
        now, worst = float(values[-1]), figure.worst(values)
        live = feed is Feed.LIVE
        cells = [Text(figure.text(now), _STYLES[figure.level(now)] if live else 'dim')]
        if course:
            cells += [
                Text(figure.text(worst), _STYLES[figure.level(worst)]),
                Text(graph(span, values), 'blue' if live else 'dim'),
            ]
        columns.add_row(figure.label, *cells)
    for name, (_, ages_ms) in sorted(span.cameras.items()):
        age_ms = float(ages_ms[-1])
        level = BY_FIELD['camera_age_max_ms'].level(age_ms)
        columns.add_row(f'camera {name}', Text(milliseconds(age_ms), _STYLES[level]))
    return Group(head, columns)


def line(model: MonitorModel) -> str:
    """Return the newest figures in one line, as `name=value` with the message's field names."""
    span = model.view()
    if span.newest is None or model.history.feed() is not Feed.LIVE:
        return model.status()
    parts = []
    for field in _LINE_FIELDS:
        value = float(BY_FIELD[field].values(span.rows[-1:])[0])
        parts.append(f'{field}={_plain(value)}')
    return ' '.join(parts)


def graph(span: Span, values: Float64Array) -> str:
    """Return the course of a figure as blocks from 0 to its largest; a blank where unknown."""
    places = np.floor((span.times_s / span.seconds + 1.0) * _GRAPH_WIDTH).astype(np.int64)
    heights = np.full(_GRAPH_WIDTH, math.nan)
    for place, value in zip(np.clip(places, 0, _GRAPH_WIDTH - 1), values):
        heights[place] = np.fmax(heights[place], value)
    return _blocks(heights)


def _once(
    model: MonitorModel, executor: Executor, console: Console, topic: str, timeout_s: float
) -> int:
    end_s = time.monotonic() + timeout_s
    while not len(model.history) and time.monotonic() < end_s:
        executor.spin_once(timeout_sec=0.1)
    if not len(model.history):
        raise OxygenError(f'{topic}: expected a report within {timeout_s:g} s, got none')
    console.print(table(model, topic, course=False))
    return 0


def _live(model: MonitorModel, executor: Executor, console: Console, topic: str) -> None:
    with Live(table(model, topic), console=console, screen=True, auto_refresh=False) as live:
        while True:
            _take_in(executor, _REDRAW_S)
            live.update(table(model, topic), refresh=True)


def _lines(model: MonitorModel, executor: Executor, period_s: float) -> None:
    while True:
        _take_in(executor, period_s)
        print(line(model), flush=True)


def _take_in(executor: Executor, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0.0:
        executor.spin_once(timeout_sec=left_s)


def _blocks(heights: Iterable[float]) -> str:
    known = [height for height in heights if not math.isnan(height)]
    top = max(known, default=0.0)
    text = ''
    for height in heights:
        if math.isnan(height):
            text += ' '
        else:
            share = height / top if top > 0.0 else 0.0
            text += _BLOCKS[min(len(_BLOCKS) - 1, max(0, int(share * len(_BLOCKS))))]
    return text


def _plain(value: float) -> str:
    return 'nan' if math.isnan(value) else f'{value:.4g}' if value < 1e6 else f'{value:.0f}'
