# SPDX-License-Identifier: Apache-2.0
"""Warm-up: every kind and usual size of work once before the node says it is ready."""

from __future__ import annotations

from collections.abc import Sequence
import time

import numpy as np

from ..engine.engine import Engine
from ..engine.scheduling.cost_model import OnlineCostModel
from ..types import CameraFrame, Observation, RobotState, SamplingParams, TaskType

_ROUNDS = 2
_TEXT_REQUESTS = 4
_TEXT_TOKENS = 4


class _SyntheticSensors:
    """Grey images, a new one at each observation, and joints at rest."""

    def __init__(self, cameras: Sequence[str], num_joints: int) -> None:
        self._cameras = cameras
        self._num_joints = num_joints
        self.num_observations = 0
        self.wanted = 0

    def observation(self, now_ns: int) -> Observation | None:
        if self.num_observations >= self.wanted:
            return None
        self.num_observations += 1
        image = np.full((240, 320, 3), 128, dtype=np.uint8)
        # Stamps below any real one: no feature of a warm-up image is ever taken for a real one.
        frames = tuple(
            CameraFrame(camera, -self.num_observations, now_ns, image) for camera in self._cameras
        )
        return Observation(-self.num_observations, 0, now_ns, frames, self.state(now_ns))

    def state(self, now_ns: int) -> RobotState | None:
        return RobotState(now_ns, now_ns, np.zeros(self._num_joints, dtype=np.float32))


def warm_up(engine: Engine, cameras: Sequence[str], num_joints: int) -> float:
    """Run observations, action passes and text through the engine; return the seconds it took.

    First calls cost far more than later ones (lazy initialisation, autotuning), so nothing of it
    enters the cost estimates before the last round, and the counters start again from zero.
    """
    start_ns = time.monotonic_ns()
    cost_model = engine.scheduler.cost_model
    real = engine.swap(_SyntheticSensors(cameras, num_joints), lambda event: None)
    sensors = engine.sensors
    assert isinstance(sensors, _SyntheticSensors)
    try:
        for round_ in range(_ROUNDS):
            if isinstance(cost_model, OnlineCostModel):
                cost_model.recording = round_ == _ROUNDS - 1
            sensors.wanted += 2
            for request in range(_TEXT_REQUESTS):
                task = TaskType.SCENE_GRAPH if request == 0 else TaskType.DIALOGUE
                # Negative ids: none of them is ever a real request's.
                engine.submit_text(
                    -1 - request, task, 'warm up', SamplingParams(max_tokens=_TEXT_TOKENS)
                )
            while (
                engine.text.num_live
                or engine.is_building
                or sensors.num_observations < sensors.wanted
            ):
                now_ns = time.monotonic_ns()
                engine.run_cycle(now_ns, now_ns + 1_000_000_000)
            engine.action.align(time.monotonic_ns())
            now_ns = time.monotonic_ns()
            engine.run_cycle(now_ns, now_ns + 1_000_000)
    finally:
        engine.stop()
        engine.swap(*real)
        if isinstance(cost_model, OnlineCostModel):
            cost_model.recording = True
    engine.reset_statistics()
    engine.check_integrity()
    return (time.monotonic_ns() - start_ns) * 1e-9
