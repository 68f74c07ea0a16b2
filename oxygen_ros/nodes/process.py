# SPDX-License-Identifier: Apache-2.0
"""Runs one node as a process: autostart, one line for the user's errors, an end that comes.

rclpy's own signal handlers are not used. They end the context at once, and a hold could not be
published any more; and their thread ends it while another destroys the node, of which the process
died now and then (rclpy 9.1.2, no upstream issue known). So signals only wake the main thread; the
executor spins in another, and the context ends after it. A second signal changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import gc
import os
import signal
import sys
import threading

from lifecycle_msgs.msg import State
import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
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
_LOOK_S = 0.5  # between two looks at whether a signal has come that another thread received
_WAKE_S = 0.5  # after which the executor is woken again, since a trigger can get lost
_NUM_WAKES = 5  # then the executor is stuck
_FAULT_BUDGET = 100  # faults of rclpy itself; a callback's own are caught by the node
_LAST_CYCLES = 20  # of the executor after shutdown: results and answers still have to leave


def run_node(name: str, make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Make a node, spin it until it is done or the process is told to end; return the exit status.

    A node that ends by itself has an attribute `done`, a Future. A lifecycle node has a parameter
    `autostart`; its shutdown transition runs at the end, like any callback.

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
        spin = _ManagedSpin(node, stop) if isinstance(node, LifecycleNode) else _Spin(node, stop)
        status = spin.run()
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
        gc.freeze()  # the interpreter's end would search all of torch for garbage: half a second
    return status


class _Spin:
    """The thread that spins a node, and its end."""

    def __init__(self, node: Node, stop: threading.Event) -> None:
        self._node = node
        self._stop = stop
        self._status = 0
        self._error: Exception | None = None
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._ended = threading.Event()

    def run(self) -> int:
        """Spin until told to end; return the exit status.

        :raises OxygenError: the node ended by itself with an error.
        """
        thread = threading.Thread(target=self._run, name='oxygen_executor', daemon=True)
        thread.start()
        while not self._stop.wait(_LOOK_S):
            pass
        for _ in range(_NUM_WAKES):
            self._executor.wake()
            if self._ended.wait(_WAKE_S):
                break
        else:
            # Stuck in a callback, such as loading a large model: nothing moves, nothing is lost.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._status)
        thread.join()
        self._executor.shutdown()  # before the node goes, whose entities it waits for
        if self._error is not None:
            raise self._error
        return self._status

    def _run(self) -> None:
        try:
            self._begin()
            while not self._stop.is_set():
                self._spin_once(None)
            self._finish()
        except Exception as error:  # noqa: B902, BLE001 the main thread raises it
            self._error = error
        self._stop.set()
        self._ended.set()

    def _begin(self) -> None:
        done = getattr(self._node, 'done', None)
        if done is not None:
            done.add_done_callback(lambda _: self._stop.set())

    def _spin_once(self, timeout_s: float | None) -> None:
        self._executor.spin_once(timeout_s)

    def _finish(self) -> None:
        done = getattr(self._node, 'done', None)
        if done is not None and done.done():
            done.result()


class _ManagedSpin(_Spin):
    """The same for a lifecycle node: one fault of rclpy's must not end it."""

    _node: LifecycleNode

    def __init__(self, node: LifecycleNode, stop: threading.Event) -> None:
        super().__init__(node, stop)
        self._num_faults = 0

    def _begin(self) -> None:
        if self._node.get_parameter('autostart').value:
            self._executor.create_task(self._autostart)

    def _autostart(self) -> None:
        success = TransitionCallbackReturn.SUCCESS
        if self._node.trigger_configure() != success or self._node.trigger_activate() != success:
            self._status = 1  # the node's log says why
            self._stop.set()

    def _spin_once(self, timeout_s: float | None) -> None:
        try:
            super()._spin_once(timeout_s)
        except ExternalShutdownException:
            self._stop.set()
        except Exception as error:  # noqa: B902, BLE001 counted, and shown
            self._num_faults += 1
            self._node.get_logger().error(
                f'executor: {type(error).__name__}: {error}', throttle_duration_sec=5.0
            )
            if self._num_faults == _FAULT_BUDGET:
                self._status = 1
                self._stop.set()

    def _finish(self) -> None:
        try:
            # rclpy has no other way to ask for the state.
            if self._node._state_machine.current_state[0] != State.PRIMARY_STATE_FINALIZED:
                self._node.trigger_shutdown()
        except Exception as error:  # noqa: B902, BLE001 the process ends all the same
            self._node.get_logger().error(f'shutdown: {error}')
        for _ in range(_LAST_CYCLES):
            self._spin_once(0.0)
