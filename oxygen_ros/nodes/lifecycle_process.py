# SPDX-License-Identifier: Apache-2.0
"""Runs one lifecycle node as a process: autostart, and an end that leaves time for a last hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import gc
import os
import signal
import sys
import threading

from lifecycle_msgs.msg import State
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from ..errors import OxygenError
from .middleware.bounded_end import END_TIMEOUT_S, end_within
from .middleware.transport import use_large_data_transport

_END_TIMEOUT_S = 2.5
_FAULT_BUDGET = 100  # faults of rclpy itself; a callback's own are caught by the node
_LAST_CYCLES = 20  # of the executor after shutdown: results and answers still have to leave


def run_lifecycle_node(
    name: str, make_node: Callable[[], LifecycleNode], args: Sequence[str] | None = None
) -> int:
    """Make a node and spin it until SIGINT or SIGTERM; return the exit status.

    rclpy's own signal handlers end the context at once, and a hold could not be published any
    more. So signals only wake this thread; the executor spins in another, where the shutdown
    transition runs like any callback, and the context ends after it. A second signal changes
    nothing.

    :param args: the command line with the program's name; None: `sys.argv`.
    """
    use_large_data_transport()
    stop = threading.Event()
    handlers = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        rclpy.init(
            args=list(sys.argv if args is None else args),
            signal_handler_options=SignalHandlerOptions.NO,
        )
        node = make_node()
    except OxygenError as error:
        print(f'{name}: {error}', file=sys.stderr)
        with end_within(END_TIMEOUT_S, 1):
            rclpy.try_shutdown()  # destroys what there is of the node, too
        return 1
    process = _Process(node, stop)
    process.run()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    gc.freeze()  # the interpreter's end would search all of torch for garbage: half a second
    return process.status


class _Process:
    """A node, the thread that spins it, and their end."""

    def __init__(self, node: LifecycleNode, stop: threading.Event) -> None:
        self.status = 0
        self._num_faults = 0
        self._node = node
        self._stop = stop
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._spin, name='oxygen_executor', daemon=True)

    def run(self) -> None:
        if self._node.get_parameter('autostart').value:
            self._executor.create_task(self._autostart)
        self._thread.start()
        # With a timeout, since a signal that another thread received does not end the wait.
        while not self._stop.wait(0.5):
            pass
        self._executor.wake()
        if not self._ended.wait(_END_TIMEOUT_S):
            # Stuck in a transition, such as loading a large model: nothing moves, nothing is lost.
            sys.stderr.flush()
            os._exit(self.status)
        self._thread.join()
        with end_within(END_TIMEOUT_S, self.status):
            self._node.destroy_node()
            self._executor.shutdown()
            rclpy.try_shutdown()

    def _autostart(self) -> None:
        success = TransitionCallbackReturn.SUCCESS
        if self._node.trigger_configure() != success or self._node.trigger_activate() != success:
            self.status = 1  # the node's log says why
            self._stop.set()

    def _spin(self) -> None:
        while not self._stop.is_set():
            self._spin_once(None)
        try:
            if not self._is_final:  # or somebody has asked for it already
                self._node.trigger_shutdown()
        except Exception as error:  # noqa: B902, BLE001 the process ends all the same
            self._node.get_logger().error(f'shutdown: {error}')
        for _ in range(_LAST_CYCLES):
            self._spin_once(0.0)
        self._ended.set()

    @property
    def _is_final(self) -> bool:
        state = self._node._state_machine.current_state  # rclpy has no other way to ask
        return bool(state[0] == State.PRIMARY_STATE_FINALIZED)

    def _spin_once(self, timeout_s: float | None) -> None:
        try:
            self._executor.spin_once(timeout_s)
        except ExternalShutdownException:
            self._stop.set()
        except Exception as error:  # noqa: B902, BLE001 one fault of rclpy's must not end the node
            self._num_faults += 1
            self._node.get_logger().error(
                f'executor: {type(error).__name__}: {error}', throttle_duration_sec=5.0
            )
            if self._num_faults == _FAULT_BUDGET:
                self.status = 1
                self._stop.set()
