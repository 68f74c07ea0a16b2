# SPDX-License-Identifier: Apache-2.0
"""A robot on virtual time: the same events and settings give the same outputs, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import threading

from ..engine.model import VLAModel
from ..engine.scheduling.cost_model import TableCostModel
from ..robot.faults import FaultLog, Logger
from ..robot.positions import CameraPoses
from ..robot.robot import Robot
from ..robot.settings import RobotSettings
from ..robot.shell import Outlets, Shell
from .cost_table import COST_NS
from .live_robot import TICK_LEAD_NS
from .memory_writer import DirectWriter
from .store_reading import DirectReader
from .virtual_world import Event, Periodic, VirtualClock, VirtualWorld

TAIL_NS = 5_000_000_000  # after the end, for answers that are under way
_WATCH_NS = 100_000_000


class VirtualRobot:
    """Made and run by one thread, which owns robot, engine, tick and memory.

    Decoding of images, the tick, memory and disk take no time; units of work take what `COST_NS`
    says.

    :param start_ns: ROS time at which the steady clock stands at 0.
    :raises ValueError: the settings cannot be met by this model.
    """

    def __init__(
        self,
        settings: RobotSettings,
        model: VLAModel,
        outlets: Outlets,
        start_ns: int,
        log: Logger,
        faults: FaultLog,
        poses: CameraPoses | None = None,
    ) -> None:
        self.clock = VirtualClock(start_ns, self._pass_to)
        self._world: VirtualWorld | None = None
        self._owner = threading.get_ident()
        shell = Shell(
            clock=self.clock,
            work_clock=self.clock,
            cost_model=TableCostModel(COST_NS),
            outlets=outlets,
            log=log,
            faults=faults,
            wake=self._drain,
            wake_engine=lambda: None,
            wake_ingest=lambda: self.robot.cameras.decode_newest(),
            make_writer=DirectWriter,
            make_reader=DirectReader,
            poses=poses,
        )
        self.robot = Robot(settings, model, shell)

    def _pass_to(self, now_ns: int) -> None:
        if self._world is not None:
            self._world.pass_to(now_ns)

    def _drain(self) -> None:
        # Not at the start, nor for another thread: what it brought is taken with the next event.
        if self._world is not None and threading.get_ident() == self._owner:
            self.robot.drain()

    def run(
        self,
        events: Iterator[Event],
        parameters: Mapping[str, object],
        *,
        end_ns: int | None = None,
        at: Sequence[Event] = (),
        on_cycle: Callable[[int], None] = lambda now_ns: None,
        tail_ns: int = TAIL_NS,
    ) -> None:
        """Play to the end, and wait for the answers that are under way; then `end` it.

        :param events: in order of time; may wait for what is still to come.
        :param parameters: of the run, for the audit log.
        :param end_ns: on the steady clock; None: the last event.
        :param at: more events, which happen after those of the same time.
        :param on_cycle: told the time after each step of the engine.
        :param tail_ns: how long to wait for answers.
        """
        robot, clock, engine = self.robot, self.clock, self.robot.engine
        self._owner = threading.get_ident()
        start_ns = clock.now_ns()
        period_ns = robot.settings.tick.period_ns
        scene_ns = round(robot.settings.memory.period_s * 1e9)
        robot.start(parameters)
        engine.action.align(start_ns + period_ns + TICK_LEAD_NS)
        periodic = [
            Periodic(scene_ns, lambda *_: robot.scene.update_in_background()),
            Periodic(_WATCH_NS, lambda *_: robot.watch()),
            Periodic(period_ns, lambda number, time_ns: robot.actuation.send(time_ns, number)),
        ]
        self._world = world = VirtualWorld(clock, events, end_ns, at, periodic)
        robot.drain()
        world.pass_to(start_ns)
        while clock.now_ns() <= world.end_ns:
            self._cycle(world)
            on_cycle(min(clock.now_ns(), world.end_ns))
        while robot.requests.num_live and clock.now_ns() <= world.end_ns + tail_ns:
            self._cycle(world)

    def end(self, reason: str, sends_last_target: bool = False) -> None:
        """End a run: every request ends, what was written is closed.

        :param sends_last_target: hold by it, as a robot needs that may be armed.
        """
        assert self._world is not None
        robot = self.robot
        robot.refuse_requests()
        if sends_last_target:
            robot.actuation.finish(self._world.num_periodic, reason)
        robot.engine.stop()
        robot.engine.check_integrity()
        robot.finish(reason)
        if robot.records.reader is not None:
            robot.records.reader.end()  # in the thread that has opened the store
        self._world = None

    def _cycle(self, world: VirtualWorld) -> None:
        """Run the engine once, or let time pass to whatever comes next."""
        clock, engine = self.clock, self.robot.engine
        now_ns = clock.now_ns()
        if not engine.run_cycle(now_ns, engine.action.deadline_ns(now_ns)):
            now_ns = clock.now_ns()
            clock.advance_to(min(engine.action.deadline_ns(now_ns), world.next_ns))
