# SPDX-License-Identifier: Apache-2.0
"""All that runs on the robot except ROS: engine thread, tick, chunk buffer, sensors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import itertools
import time

from ..control import hold_reasons
from ..control.realtime_report import RealtimeReport
from ..control.tick import Decision
from ..engine.engine import Engine, EngineEvent
from ..engine.kv.memory_report import memory_report, MemoryReport
from ..engine.model import VLAModel
from ..engine.scheduling.cost_model import CostModel, OnlineCostModel
from ..engine.text.constraint import TokenConstraint
from ..robot.settings import Publish, RobotSettings
from ..types import ActionChunk, FinishReason, SamplingParams, TaskType
from .engine_thread import EngineThread
from .sensor_hub import SensorHub
from .tick_loop import TickLoop, TickLoopConfig
from .tick_thread import TickThread
from .warm_up import warm_up
from .work_clock import work_clock

# The tick falls this long before an action pass is due: the engine is quiet then (safety
# threshold), so that neither a slice nor a pass holds the interpreter when a target has to go out.
TICK_LEAD_NS = 1_000_000
_FIRST_PASS_NS = 60_000_000


class Runtime:
    """One robot's engine and tick.

    Made at configure (allocates and warms up), started at activate. `drain` gives out what the
    engine produced, in order, to whoever `on_outbox` woke; `on_target` is called in the tick's
    thread in every tick.

    :param on_target: takes (decision, lateness in ns) of each tick; must return at once.
    :param on_outbox: wakes the reader of `drain`; called in the engine's thread, must return at
        once.
    """

    def __init__(
        self,
        config: RobotSettings,
        model: VLAModel,
        on_target: Callable[[Decision, int], None],
        on_outbox: Callable[[], None] = lambda: None,
        cost_model: CostModel | None = None,
    ) -> None:
        self.config = config
        self.model = model
        self.faults: deque[str] = deque(maxlen=16)  # tracebacks, newest last
        self.started_ns = 0
        self._on_outbox = on_outbox
        self._outbox: deque[EngineEvent] = deque()
        self._request_ids = itertools.count(1)
        self.sensors = SensorHub(config.sensors)
        self.loop = TickLoop(
            TickLoopConfig(config.tick, config.limits, config.blend_s, config.realtime),
            on_target,
            self.sensors.newest_state,
        )
        self.buffer = self.loop.buffer
        self.arming = self.loop.arming
        self.tick = self.loop.tick
        cost_model = OnlineCostModel() if cost_model is None else cost_model
        self.cost_model = cost_model
        self.engine = Engine(
            model,
            config.engine,
            work_clock(model.device),
            cost_model,
            self.sensors,
            self._emit,
            lambda: self._engine_thread.poll(),
        )
        self._engine_thread = EngineThread(self.engine, self._on_fault)
        self.sensors.wake = self._engine_thread.wake
        self.warm_up_s = warm_up(self.engine, config.sensors.cameras, model.spec.action_dim)

    # Life.

    def activate(self) -> None:
        """Start the engine and the tick.

        The first targets start from the measured joints, all counts from zero.
        """
        self._outbox.clear()
        self.engine.reset_statistics()
        self.sensors.restart()
        self.engine.action.epoch = self.loop.prepare()
        period_ns = self.config.tick.period_ns
        grid_ns = time.monotonic_ns() + period_ns
        self._engine_thread.start(grid_ns + TICK_LEAD_NS)
        # The first target waits for a first pass, or it could only hold.
        self.started_ns = grid_ns + -(-_FIRST_PASS_NS // period_ns) * period_ns
        if self.config.publish is Publish.TICK:
            self.loop.start(self.started_ns)

    def deactivate(self, reason: str = hold_reasons.DEACTIVATED, timeout_s: float = 5.0) -> bool:
        """Stop the tick, hold by a last target, stop the engine; every live request ends.

        :param reason: of the hold.
        :return: False: the engine did not stop in time.
        """
        self.loop.stop(reason)
        stopped = self._engine_thread.stop(timeout_s)
        self.loop.release()
        return stopped

    @property
    def tick_thread(self) -> TickThread | None:
        """The tick's thread while active."""
        return self.loop.thread

    @property
    def realtime_report(self) -> RealtimeReport:
        """What came of the real-time settings."""
        return self.loop.realtime_report

    @property
    def engine_thread(self) -> EngineThread:
        """The engine's thread."""
        return self._engine_thread

    def _publish_from_engine(self) -> None:
        """Give out the target of this period, as late as the engine comes to it; engine thread."""
        now_ns = time.monotonic_ns()
        if now_ns < self.started_ns:
            return
        tick = (now_ns - self.started_ns) // self.config.tick.period_ns
        self.loop.send(self.started_ns + tick * self.config.tick.period_ns, tick)

    # Results.

    def _emit(self, event: EngineEvent) -> None:
        if isinstance(event, ActionChunk):
            self.buffer.add(event)
            if self.config.publish is Publish.ENGINE:
                self._publish_from_engine()
        self._outbox.append(event)
        self._on_outbox()

    def _on_fault(self, report: str) -> None:
        self.faults.append(report)
        self._on_outbox()

    def drain(self) -> list[EngineEvent]:
        """Return what the engine produced since the last call, in order."""
        events = []
        while self._outbox:
            events.append(self._outbox.popleft())
        return events

    # Requests, from any thread.

    def submit_text(
        self,
        task: TaskType,
        prompt: str,
        sampling: SamplingParams,
        constraint: TokenConstraint | None = None,
    ) -> int:
        """Post a text request; return its id. It ends in exactly one TextResult."""
        request_id = next(self._request_ids)
        self._engine_thread.post(
            lambda engine: engine.submit_text(request_id, task, prompt, sampling, constraint)
        )
        return request_id

    def cancel_text(
        self, request_id: int, reason: FinishReason = FinishReason.CANCELLED, message: str = ''
    ) -> None:
        """Post the end of a text request; nothing happens if it has ended."""
        self._engine_thread.post(lambda engine: _end(engine, request_id, reason, message))

    def set_instruction(self, instruction: str) -> None:
        """Post a new instruction, in force from the next observation on."""
        self._engine_thread.post(lambda engine: engine.set_instruction(instruction))

    def forget_observations(self) -> None:
        """Post that prefix and vision features be dropped: a camera sees something else now."""
        self._engine_thread.post(lambda engine: engine.reset_observations())

    def reset(self) -> None:
        """Drop chunks, prefix and sensor data: time jumped."""
        self.buffer.reset()
        self.sensors.clear()

        def command(engine: Engine) -> None:
            # That of now: while inactive this waits for an activation, which begins a newer one.
            engine.action.epoch = self.buffer.epoch
            engine.reset_observations()

        self._engine_thread.post(command)

    def memory_report(self) -> MemoryReport:
        """Return how the KV cache is used.

        Read without a lock: counts may be of two neighbouring moments.
        """
        return memory_report(self.engine.manager, time.monotonic_ns())


def _end(engine: Engine, request_id: int, reason: FinishReason, message: str) -> None:
    engine.cancel_text(request_id, reason, message)
