# SPDX-License-Identifier: Apache-2.0
"""A robot on virtual time that others let pass: as a replay, but with live messages.

Nothing happens but what /clock lets happen, so the same messages in the same order give the same
outputs as a replay of them, on any machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
import functools
import queue
import threading

from ..control import hold_reasons
from ..engine.model import VLAModel
from ..robot.faults import FaultLog, Logger
from ..robot.positions import CameraPoses
from ..robot.robot import Robot
from ..robot.settings import RobotSettings
from ..robot.shell import Outlets
from .virtual_robot import VirtualRobot
from .virtual_world import Event


class LockstepRobot:
    """Has the interface of `LiveRobot`; a thread of its own owns the robot during a run.

    All is called by one thread, but what is said to be called by the robot's.

    :param ros_now_ns: returns the time that /clock has reached.
    :param wake: asks the executor to call `take_deliveries` soon; the robot's thread calls it.
    :raises ValueError: the settings cannot be met by this model.
    """

    warm_up_s = 0.0

    def __init__(
        self,
        settings: RobotSettings,
        model: VLAModel,
        outlets: Outlets,
        ros_now_ns: Callable[[], int],
        log: Logger,
        faults: FaultLog,
        wake: Callable[[], None],
        poses: CameraPoses | None = None,
    ) -> None:
        self._virtual = VirtualRobot(settings, model, outlets, ros_now_ns(), log, faults, poses)
        self.robot = self._virtual.robot
        self.clock = self._virtual.clock
        self.is_active = False
        self.num_events = 0  # messages, requests and steps of /clock so far
        self._ros_now_ns = ros_now_ns
        self._log = log
        self._faults = faults
        self._wake = wake
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._deliveries: deque[Callable[[], None]] = deque()
        self._is_waiting = False  # for an event
        self._offset_ns = 0
        self._reached_ns = 0  # steady time of the newest event
        self._reason = hold_reasons.DEACTIVATED
        self._thread: threading.Thread | None = None

    def start(self, parameters: Mapping[str, object]) -> None:
        """Begin a run at the time that /clock has reached.

        :param parameters: of the run, for the audit log.
        """
        self._events = queue.SimpleQueue()
        self._reached_ns = self.clock.now_ns()
        self._offset_ns = self._ros_now_ns() - self._reached_ns
        self.clock.move_ros_time(self._offset_ns)
        self._thread = threading.Thread(
            target=self._run, args=(parameters,), name='oxygen_lockstep', daemon=True
        )
        self.is_active = True
        self._thread.start()

    def _run(self, parameters: Mapping[str, object]) -> None:
        self.robot.health.is_alive = True
        try:
            self._virtual.run(self._received(), parameters, tail_ns=0)
            self._virtual.end(self._reason, sends_last_target=True)
        except Exception as error:  # noqa: B902, BLE001 a run that cannot repeat is over
            self.robot.health.failed = True
            self._faults.note('lockstep', error)
        self.robot.health.is_alive = False

    def _received(self) -> Iterator[Event]:
        while True:
            self._is_waiting = True
            event = self._events.get()
            self._is_waiting = False
            if event is None:
                return
            yield event

    def is_idle(self) -> bool:
        """Return whether all has happened that could by the time that /clock has reached."""
        return self._is_waiting and self._events.empty()

    def stop(self, reason: str = hold_reasons.DEACTIVATED, timeout_s: float = 5.0) -> bool:
        """End the run at the time that was reached; False: it did not end in time."""
        thread, self._thread = self._thread, None
        self.is_active = False
        if thread is None:
            return True
        self._reason = reason
        self._events.put(None)
        thread.join(timeout_s)
        self.take_deliveries()
        return not thread.is_alive()

    def close(self) -> None:
        """Free what reads the store, once stopped."""
        self.robot.close()
        self.take_deliveries()

    # Between the threads.

    def submit(self, call: Callable[[Robot], None]) -> None:
        """Have a call made in the robot's thread, at the time that /clock has reached."""
        if self._thread is None:
            call(self.robot)
        else:
            self._put(functools.partial(self._faults.guard('lockstep', call), self.robot))

    def pass_time(self) -> None:
        """Let happen what is due by the time that /clock has reached."""
        if self._thread is not None:
            self._put(lambda: None)

    def _put(self, happen: Callable[[], object]) -> None:
        self._reached_ns = max(self._reached_ns, self._ros_now_ns() - self._offset_ns)
        self._events.put(Event(self._reached_ns, happen))
        self.num_events += 1

    def time_jumped(self, cause: str) -> None:
        """Go on from where /clock has jumped to; the steady clock stays where it was."""
        self._offset_ns = self._ros_now_ns() - self._reached_ns
        offset_ns = self._offset_ns

        def jump(robot: Robot) -> None:
            self.clock.move_ros_time(offset_ns)
            robot.time_jumped(cause)

        self.submit(jump)

    def deliver(self, call: Callable[[], None]) -> None:
        """Have a call made in the executor's thread; the robot's thread asks for it."""
        self._deliveries.append(call)
        self._wake()

    def take_deliveries(self) -> None:
        """Make the calls that were asked for."""
        while self._deliveries:
            self._deliveries.popleft()()
