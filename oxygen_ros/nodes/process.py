"""Runs one node as a process: a clean end by signal, one line for the user's errors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
import signal
import sys

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.utilities import remove_ros_args

from ..errors import OxygenError
from .transport import use_large_data_transport

_BAD_ARGUMENTS = (rclpy_implementation.RCLInvalidROSArgsError,
                  rclpy_implementation.UnknownROSArgsError)


def run_node(name: str, make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Make a node, spin it until it is done or the process is told to end; return the exit status.

    A node that ends by itself has an attribute `done`, a Future.

    :param name: the program, as errors name it.
    :param args: the command line with the program's name; None: `sys.argv`.
    """
    use_large_data_transport()
    arguments = list(sys.argv if args is None else args)
    node = None
    try:
        unknown = remove_ros_args(arguments)[1:]
        if unknown:
            raise OxygenError(f'arguments: expected only --ros-args, got {" ".join(unknown)}')
        rclpy.init(args=arguments)
        node = make_node()
        _spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except rclpy_implementation.RCLError as error:
        if isinstance(error, _BAD_ARGUMENTS):
            return _fail(name, error)
        if rclpy.ok():
            raise
        # The context ended while a callback was publishing: the way a signal shows there.
    except (OxygenError, ParameterException, *_BAD_ARGUMENTS) as error:
        return _fail(name, error)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not break the cleaning
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


def _spin(node: Node) -> None:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    done = getattr(node, 'done', None)
    if done is None:
        executor.spin()
        return
    executor.spin_until_future_complete(done)
    if done.done():
        done.result()


def _fail(name: str, error: BaseException) -> int:
    print(f'{name}: {" ".join(str(error).split())}', file=sys.stderr)
    return 1
