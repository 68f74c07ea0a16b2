# SPDX-License-Identifier: Apache-2.0
"""A whole engine on virtual time, with synthetic sensors and a record of what it gave out."""

from __future__ import annotations

import numpy as np

from oxygen_ros.engine.clock import VirtualWorkClock
from oxygen_ros.engine.config import EngineConfig
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.scheduling.cost_model import TableCostModel
from oxygen_ros.engine.scheduling.work import UnitKey, UnitKind
from oxygen_ros.engine.spec import PrefixScope
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig
from oxygen_ros.types import (
    ActionChunk,
    CameraFrame,
    Observation,
    RobotState,
    SamplingParams,
    TaskType,
    TextDelta,
    TextResult,
)

MS = 1_000_000
PERIOD_NS = 20 * MS
TABLE = {
    UnitKey(UnitKind.INGEST, 0): 200_000,
    UnitKey(UnitKind.VISION, 0): 1_500_000,
    UnitKey(UnitKind.PREFILL, 0): 1_800_000,
    UnitKey(UnitKind.WRITE_KV, 0): 200_000,
    UnitKey(UnitKind.ACTION_PROMPT, 0): 400_000,
    UnitKey(UnitKind.TEXT_PREFILL, 0): 400_000,
    UnitKey(UnitKind.DECODE, 0): 500_000,
    UnitKey(UnitKind.HEAD, 0): 200_000,
    UnitKey(UnitKind.DENOISE, 0): 1_000_000,
}

_MODELS: dict[object, TinyModel] = {}


def tiny(num_cameras=2, scope=PrefixScope.OBSERVATION, num_kv_heads=1, seed=0) -> TinyModel:
    """Return a tiny model; equal ones are built once."""
    key = (num_cameras, scope, num_kv_heads, seed)
    if key not in _MODELS:
        _MODELS[key] = TinyModel(
            TinyConfig(
                num_cameras=num_cameras, prefix_scope=scope, num_kv_heads=num_kv_heads, seed=seed
            )
        )
    return _MODELS[key]


class FakeSensors:
    """Random images that depend on camera and observation alone, a new one every `period_ns`."""

    def __init__(self, num_cameras=2, num_joints=7, period_ns=100 * MS, num_observations=10**9):
        self.cameras = [f'camera_{index}' for index in range(num_cameras)]
        self.num_joints = num_joints
        self.period_ns = period_ns
        self.num_observations = num_observations
        self.given = 0
        self.patch = None  # (observation_id, camera index): one patch of that image is changed

    def image(self, observation_id, camera):
        rng = np.random.default_rng(1000 * observation_id + camera)
        image = rng.integers(0, 256, (112, 112, 3), dtype=np.uint8)
        if self.patch == (observation_id, camera):
            image[28:42, 28:42] = 255 - image[28:42, 28:42]
        return image

    def make(self, observation_id, now_ns):
        stamp = observation_id * self.period_ns
        frames = tuple(
            CameraFrame(camera, stamp, now_ns, self.image(observation_id, index))
            for index, camera in enumerate(self.cameras)
        )
        return Observation(observation_id, stamp, now_ns, frames, self.state(now_ns))

    def observation(self, now_ns):
        due = min(now_ns // self.period_ns + 1, self.num_observations)
        if due <= self.given:
            return None
        self.given = due
        return self.make(due, now_ns)

    def state(self, now_ns):
        stamp = now_ns // PERIOD_NS * PERIOD_NS
        positions = np.sin(np.arange(self.num_joints) + stamp * 1e-9).astype(np.float32)
        return RobotState(stamp + 1, stamp, positions)


class Harness:
    """An engine, its virtual clock and its outbox."""

    def __init__(self, model=None, sensors=None, **config):
        self.model = model or tiny()
        self.clock = VirtualWorkClock()
        self.sensors = sensors or FakeSensors(self.model.spec.num_cameras)
        self.events = []
        self.on_poll = lambda: None
        self.cost_model = TableCostModel(TABLE)
        self.engine = Engine(
            self.model,
            EngineConfig(**config),
            self.clock,
            self.cost_model,
            self.sensors,
            self.events.append,
            lambda: self.on_poll(),
        )
        self.engine.action.align(0)
        self._next_id = 0
        self.num_cycles = 0
        self.check_every = 1

    def ask(
        self,
        prompt='what?',
        max_tokens=8,
        task=TaskType.DIALOGUE,
        request_id=None,
        constraint=None,
        **sampling,
    ):
        if request_id is None:
            self._next_id += 1
            request_id = self._next_id
        self.engine.submit_text(
            request_id, task, prompt, SamplingParams(max_tokens=max_tokens, **sampling), constraint
        )
        return request_id

    def cycle(self):
        """Run one cycle; idle time passes up to its deadline."""
        now = self.clock.now_ns()
        deadline = self.engine.action.deadline_ns(now)
        self.engine.run_cycle(now, deadline)
        self.clock.advance_to(deadline)
        self.num_cycles += 1
        if self.num_cycles % self.check_every == 0:
            self.engine.check_integrity()

    def run(self, num_cycles):
        for _ in range(num_cycles):
            self.cycle()
        return self

    def run_until(self, done, limit=5000):
        for _ in range(limit):
            if done():
                return self
            self.cycle()
        raise AssertionError('not done within the limit of cycles')

    def finish_text(self, limit=5000):
        return self.run_until(lambda: not self.engine.text.num_live, limit)

    @property
    def chunks(self):
        return [event for event in self.events if isinstance(event, ActionChunk)]

    @property
    def results(self):
        return {event.request_id: event for event in self.events if isinstance(event, TextResult)}

    @property
    def deltas(self):
        return [event for event in self.events if isinstance(event, TextDelta)]
