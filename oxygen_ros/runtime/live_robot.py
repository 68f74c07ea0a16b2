# SPDX-License-Identifier: Apache-2.0
"""A robot in real time: the threads that drive it on this machine's steady clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import threading
import time

from ..control import hold_reasons
from ..engine.model import VLAModel
from ..engine.scheduling.cost_model import CostModel, OnlineCostModel
from ..robot.clock import RobotClock
from ..robot.faults import FaultLog, Logger
from ..robot.positions import CameraPoses
from ..robot.robot import Robot
from ..robot.settings import Publish, RobotSettings
from ..robot.shell import Outlets, Shell
from .engine_thread import EngineThread
from .ingest_thread import IngestThread
from .memory_writer import MemoryWriter
from .store_reading import ReaderThread
from .tick_loop import TickLoop
from .warm_up import warm_up
from .work_clock import work_clock

# The tick falls this long before an action pass is due: the engine is quiet then (safety
# threshold), so that neither a slice nor a pass holds the interpreter when a target leaves.
TICK_LEAD_NS = 1_000_000
_FIRST_PASS_NS = 60_000_000


class LiveRobot:
    """Made at configure (allocates and warms up), started at activate.

    Belongs to one thread, the robot's owner.

    :param clock: its steady time is that of this machine.
    :param wake: asks the owner to call `robot.drain` soon; any thread calls it.
    :raises ValueError: the settings cannot be met by this model.
    """

    def __init__(
        self,
        settings: RobotSettings,
        model: VLAModel,
        outlets: Outlets,
        clock: RobotClock,
        log: Logger,
        faults: FaultLog,
        wake: Callable[[], None] = lambda: None,
        poses: CameraPoses | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        work, images = threading.Event(), threading.Event()
        shell = Shell(
            clock=clock,
            work_clock=work_clock(model.device),
            cost_model=OnlineCostModel() if cost_model is None else cost_model,
            outlets=outlets,
            log=log,
            faults=faults,
            wake=wake,
            wake_engine=work.set,
            wake_ingest=images.set,
            make_writer=MemoryWriter,
            make_reader=ReaderThread,
            poses=poses,
        )
        self.robot = Robot(settings, model, shell)
        self.clock = clock
        self.engine_thread = EngineThread(self.robot.engine, self.robot.health, work, wake)
        self.ingest = IngestThread(self.robot.cameras.decode_newest, images)
        self.loop = TickLoop(self.robot.actuation, settings.realtime)
        self.is_active = False
        self.warm_up_s = warm_up(
            self.robot.engine, settings.sensors.cameras, model.spec.action_dim
        )

    def start(self, parameters: Mapping[str, object]) -> None:
        """Start ingest, engine and tick, all counts from zero.

        :param parameters: of the run, for the audit log.
        """
        robot = self.robot
        robot.start(parameters)
        self.ingest.start()
        self.loop.prepare()
        period_ns = robot.settings.tick.period_ns
        grid_ns = time.monotonic_ns() + period_ns
        # The first target waits for a first pass, or it could only hold.
        robot.started_ns = grid_ns + -(-_FIRST_PASS_NS // period_ns) * period_ns
        self.engine_thread.start(grid_ns + TICK_LEAD_NS)
        if robot.settings.publish is Publish.TICK:
            self.loop.start(robot.started_ns)
        self.is_active = True

    def stop(self, reason: str = hold_reasons.DEACTIVATED, timeout_s: float = 5.0) -> bool:
        """Hold by a last target, stop everything and end every request.

        :param reason: of the hold.
        :return: False: the engine did not stop in time.
        """
        self.is_active = False
        self.robot.refuse_requests()
        self.loop.stop(reason)
        stopped = self.engine_thread.stop(timeout_s)
        self.loop.release()
        self.ingest.stop()
        if not self.robot.finish(reason):
            self.robot.log.error('memory: not all was written before the end')
        return stopped

    def close(self) -> None:
        """Free what reads the store, once stopped."""
        self.robot.close()

    # The same thread owns the robot and calls.

    def submit(self, call: Callable[[Robot], None]) -> None:
        """Make a call now."""
        call(self.robot)

    def deliver(self, call: Callable[[], None]) -> None:
        """Make a call now."""
        call()

    def take_deliveries(self) -> None:
        """Publish and forward what the engine produced since the last call."""
        self.robot.drain()

    def time_jumped(self, cause: str) -> None:
        """Drop what was received and computed: ROS time does not go on from where it was."""
        self.robot.time_jumped(cause)
