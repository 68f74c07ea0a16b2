# SPDX-License-Identifier: Apache-2.0
"""`oxygen top`: the figures of ~/latency in a terminal, for a robot reached by ssh."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from ..errors import OxygenError
from .monitor_model import MonitorModel

if TYPE_CHECKING:
    from rclpy.executors import Executor
    from rich.console import Console

DEFAULT_TOPIC = '/oxygen/latency'
_REDRAW_S = 0.25


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
    from rich.console import Console

    from .latency_source import LatencySource

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


def _once(
    model: MonitorModel, executor: Executor, console: Console, topic: str, timeout_s: float
) -> int:
    from .top_view import table

    end_s = time.monotonic() + timeout_s
    while not len(model.history) and time.monotonic() < end_s:
        executor.spin_once(timeout_sec=0.1)
    if not len(model.history):
        raise OxygenError(f'{topic}: expected a report within {timeout_s:g} s, got none')
    console.print(table(model, topic, course=False))
    return 0


def _live(model: MonitorModel, executor: Executor, console: Console, topic: str) -> None:
    from rich.live import Live

    from .top_view import table

    with Live(table(model, topic), console=console, screen=True, auto_refresh=False) as live:
        while True:
            _take_in(executor, _REDRAW_S)
            live.update(table(model, topic), refresh=True)


def _lines(model: MonitorModel, executor: Executor, period_s: float) -> None:
    from .top_view import line

    while True:
        _take_in(executor, period_s)
        print(line(model), flush=True)


def _take_in(executor: Executor, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0.0:
        executor.spin_once(timeout_sec=left_s)
