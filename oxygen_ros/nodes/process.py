# SPDX-License-Identifier: Apache-2.0
"""Runs one node as a process: a clean end by signal, one line for the user's errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import gc
import signal
import sys
import threading

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from ..errors import OxygenError
from .middleware.bounded_end import END_TIMEOUT_S, end_within
from .middleware.transport import use_large_data_transport

_BAD_ARGUMENTS = (
    rclpy_implementation.RCLInvalidROSArgsError,
    rclpy_implementation.UnknownROSArgsError,
)
_LOOK_S = 0.2  # between two looks at whether a signal has come


def run_node(name: str, make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Make a node, spin it until it is done or the process is told to end; return the exit status.

    A node that ends by itself has an attribute `done`, a Future. rclpy's own signal handlers are
    not used: their thread ends the context while this one destroys the node, and now and then
    the process died of it.

    :param name: the program, as errors name it.
    :param args: the command line with the program's name; None: `sys.argv`.
    """
    use_large_data_transport()
    arguments = list(sys.argv if args is None else args)
    status, node, error = 1, None, None
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        unknown = remove_ros_args(arguments)[1:]
        if unknown:
            raise OxygenError(f'arguments: expected only --ros-args, got {" ".join(unknown)}')
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        node = make_node()
        _spin(node, stop)
        status = 0
    except ExternalShutdownException:
        status = 0
    except (OxygenError, ParameterException, *_BAD_ARGUMENTS) as caught:
        error = caught
        print(f'{name}: {" ".join(str(error).split())}', file=sys.stderr)
    finally:
        with end_within(END_TIMEOUT_S, status):
            if node is not None:
                node.destroy_node()
            node = error = None  # its traceback has what there is of a node that was not made
            gc.collect()
            rclpy.try_shutdown()
    return status


def _spin(node: Node, stop: threading.Event) -> None:
    done = getattr(node, 'done', None)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        while not stop.is_set() and (done is None or not done.done()):
            executor.spin_once(timeout_sec=_LOOK_S)
    finally:
        executor.shutdown()  # before the node goes, whose entities it waits for
    if done is not None and done.done():
        done.result()
