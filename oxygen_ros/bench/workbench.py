# SPDX-License-Identifier: Apache-2.0
"""A whole engine with synthetic sensors, on virtual or real time: what every measurement without
ROS stands on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..engine.clock import VirtualWorkClock, WorkClock
from ..engine.config import EngineConfig
from ..engine.engine import Engine, EngineEvent
from ..engine.model import VLAModel
from ..engine.scheduling.cost_model import CostModel, TableCostModel
from ..runtime.cost_table import COST_NS
from ..types import (
    ActionChunk,
    CameraFrame,
    Observation,
    RobotState,
    SamplingParams,
    TaskType,
    TextResult,
)

MS = 1_000_000
PERIOD_NS = 20 * MS


class SyntheticSensors:
    """Random images that depend on observation and camera alone, a new one every `period_ns`.

    :param period_ns: 0: a new observation whenever it is asked for.
    """

    def __init__(
        self,
        num_cameras: int,
        num_joints: int = 7,
        period_ns: int = 100 * MS,
        image_px: int = 112,
        num_observations: int = 10**9,
    ) -> None:
        self.cameras = tuple(f'camera_{index}' for index in range(num_cameras))
        self.num_joints = num_joints
        self.period_ns = period_ns
        self.image_px = image_px
        self.num_observations = num_observations
        self.num_given = 0

    def image(self, observation_id: int, camera: int) -> np.ndarray:
        """Return one image: [image_px, image_px, 3] uint8."""
        rng = np.random.default_rng(1000 * observation_id + camera)
        return rng.integers(0, 256, (self.image_px, self.image_px, 3), dtype=np.uint8)

    def make(self, observation_id: int, now_ns: int) -> Observation:
        """Return an observation."""
        stamp = observation_id * max(self.period_ns, 1)
        frames = tuple(
            CameraFrame(camera, stamp, now_ns, self.image(observation_id, index))
            for index, camera in enumerate(self.cameras)
        )
        return Observation(observation_id, stamp, now_ns, frames, self.state(now_ns))

    def observation(self, now_ns: int) -> Observation | None:
        """Return the newest observation that was not given yet."""
        due = self.num_given + 1 if not self.period_ns else now_ns // self.period_ns + 1
        due = min(due, self.num_observations)
        if due <= self.num_given:
            return None
        self.num_given = due
        return self.make(due, now_ns)

    def state(self, now_ns: int) -> RobotState:
        """Return a state that is new once in each tick."""
        stamp = now_ns // PERIOD_NS * PERIOD_NS
        positions = np.sin(np.arange(self.num_joints) + stamp * 1e-9).astype(np.float32)
        return RobotState(stamp + 1, stamp, positions)


class Workbench:
    """An engine, its clock and what it gave out.

    :param clock: virtual by default, charged by the replay's cost table.
    """

    def __init__(
        self,
        model: VLAModel,
        config: EngineConfig,
        sensors: SyntheticSensors | None = None,
        clock: WorkClock | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        self.model = model
        self.clock: WorkClock = VirtualWorkClock() if clock is None else clock
        self.sensors = (
            SyntheticSensors(model.spec.num_cameras, model.spec.action_dim)
            if sensors is None
            else sensors
        )
        self.events: list[EngineEvent] = []
        self.on_poll: Callable[[], None] = lambda: None
        self.engine = Engine(
            model,
            config,
            self.clock,
            TableCostModel(COST_NS) if cost_model is None else cost_model,
            self.sensors,
            self.events.append,
            lambda: self.on_poll(),
        )
        self.engine.action.align(self.clock.now_ns())
        self._num_requests = 0

    def ask(
        self,
        prompt: str = 'what do you see?',
        max_tokens: int = 32,
        task: TaskType = TaskType.DIALOGUE,
        request_id: int | None = None,
    ) -> int:
        """Submit a text request; return its id."""
        if request_id is None:
            self._num_requests += 1
            request_id = self._num_requests
        self.engine.submit_text(
            request_id, task, prompt, SamplingParams(max_tokens=max_tokens, seed=request_id)
        )
        return request_id

    def cycle(self) -> int:
        """Run one cycle; on virtual time, idle time passes up to its deadline."""
        now_ns = self.clock.now_ns()
        deadline_ns = self.engine.action.deadline_ns(now_ns)
        worked = self.engine.run_cycle(now_ns, deadline_ns)
        if isinstance(self.clock, VirtualWorkClock):
            self.clock.advance_to(deadline_ns)
        return worked

    def run_until(self, done: Callable[[], bool], max_cycles: int = 100_000) -> None:
        """Run cycles until `done()`.

        :raises RuntimeError: not done after `max_cycles`.
        """
        for _ in range(max_cycles):
            if done():
                return
            self.cycle()
        raise RuntimeError(f'expected to be done within {max_cycles} cycles')

    @property
    def chunks(self) -> list[ActionChunk]:
        """Action chunks so far."""
        return [event for event in self.events if isinstance(event, ActionChunk)]

    @property
    def results(self) -> list[TextResult]:
        """Text results so far."""
        return [event for event in self.events if isinstance(event, TextResult)]
