# SPDX-License-Identifier: Apache-2.0
"""Ten thousand random messages through ingest, hub and tick: no exception, no wild target."""

from __future__ import annotations

import time

from hypothesis import given, HealthCheck, settings
from hypothesis import strategies as st
import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the messages are those of ROS')
from random_messages import draws, JOINTS, make_message, REACH

from oxygen_ros.control import Arming, ChunkBuffer, ControlTick, JointLimits, TickConfig
from oxygen_ros.ingest import CameraRules, CameraSink, JointStream, Receipt
from oxygen_ros.models.registry import create_model
from oxygen_ros.nodes.messages import ns_of
from oxygen_ros.robot.cameras import CameraInputs
from oxygen_ros.robot.faults import FaultLog
from oxygen_ros.robot.sensor_config import SensorConfig
from oxygen_ros.robot.sensor_hub import SensorHub
from oxygen_ros.types import ActionChunk, Provenance

CAMERAS = ('left', 'right')
NUM_RUNS, NUM_MESSAGES = 100, 100  # ten thousand
PERIOD_NS = 20_000_000
LIMIT, MAX_STEP = REACH, 0.04
MODEL = create_model('tiny', num_cameras=2, num_joints=len(JOINTS))


class Silent:
    """A logger for what must not happen."""

    def error(self, line):
        raise AssertionError(line)


class Clock:
    """This machine's steady clock, and ROS time at a fixed distance from it."""

    def now_ns(self):
        return time.monotonic_ns()

    def offset_ns(self):
        return 1_700_000_000_000_000_000


class Robot:
    """All that lies between a message and a target, but for the engine's thread."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.clock = Clock()
        self.faults = FaultLog(Silent())
        self.hub = SensorHub(SensorConfig(CAMERAS, assembly_wait_s=0.0, max_skew_s=10.0))
        self.jumps = []
        sink = CameraSink(self.hub.put_frame, self.hub.drop_frame, self.jump, lambda camera: None)
        rules = CameraRules(frozen_after_s=1.0)
        self.cameras = CameraInputs(CAMERAS, rules, self.clock, sink, self.faults, lambda: None)
        self.joints = JointStream(JOINTS, rules, self.hub.put_state)
        self.buffer = ChunkBuffer(len(JOINTS), PERIOD_NS, PERIOD_NS)
        arming = Arming()
        arming.enable()
        limits = JointLimits.create(
            len(JOINTS), min_position=-LIMIT, max_position=LIMIT, max_step=MAX_STEP
        )
        self.tick = ControlTick(
            TickConfig(len(JOINTS), activation_ramp_s=0.0), limits, self.buffer, arming
        )
        self.deadline_ns = time.monotonic_ns()
        self.num_observations = 0
        self.decisions = []

    def jump(self, camera):
        self.jumps.append(camera)
        self.buffer.reset()
        self.hub.clear()

    def take(self, message):
        stamp_ns = ns_of(message.header.stamp)
        receipt = Receipt(self.clock.now_ns(), self.clock.offset_ns())
        if hasattr(message, 'position'):
            self.joints.take(message.name, message.position, stamp_ns, receipt)
        else:
            self.cameras.offer(str(self.rng.choice(CAMERAS)), message, stamp_ns, receipt)
            self.cameras.decode_newest()

    def think(self):
        """See what there is as the engine does, and answer with a wild chunk."""
        observation = self.hub.observation(time.monotonic_ns())
        if observation is None:
            return
        self.num_observations += 1
        for frame in observation.frames:
            assert frame.steady_ns <= time.monotonic_ns()
            assert np.isfinite(MODEL.preprocess(frame).numpy()).all()
        values = self.rng.normal(0.0, 3.0, (20, len(JOINTS))).astype(np.float32)
        self.buffer.add(
            ActionChunk(
                self.num_observations,
                self.buffer.epoch,
                values,
                self.deadline_ns,
                1,
                PERIOD_NS,
                observation.steady_ns,
                self.deadline_ns,
                self.deadline_ns,
                Provenance(1, 1, CAMERAS, (1, 1), 1, 'sum'),
            )
        )

    def decide(self):
        self.deadline_ns = max(self.deadline_ns + 1, time.monotonic_ns())
        decision = self.tick.decide(len(self.decisions), self.deadline_ns, self.hub.newest_state())
        self.decisions.append(decision)
        return decision


@given(
    messages=st.lists(draws(), min_size=NUM_MESSAGES, max_size=NUM_MESSAGES),
    seed=st.integers(0, 2**16),
)
@settings(
    max_examples=NUM_RUNS,
    deadline=None,
    suppress_health_check=[
        HealthCheck.data_too_large,
        HealthCheck.too_slow,
        HealthCheck.large_base_example,
    ],
)
def test_random_messages_raise_nothing_and_move_nothing_out_of_its_limits(messages, seed):
    robot = Robot(seed)
    before = None
    for draw in messages:
        robot.take(make_message(draw, time.monotonic_ns() + robot.clock.offset_ns()))
        robot.think()
        target, armed, _ = robot.decide()
        assert len(target.values) == len(JOINTS)
        if target.held and before is None:
            continue  # no start is known, or the joints stand where they stand
        assert armed and np.isfinite(target.values).all()
        if not target.held:
            assert (abs(target.values) <= LIMIT + 1e-9).all(), target
        if before is not None:
            assert (abs(target.values - before) <= MAX_STEP + 1e-9).all(), (before, target)
        before = target.values
    assert not robot.faults.counts
    for name, source in robot.cameras.inputs.items():
        counts = source.counts
        assert counts.received + robot.jumps.count(name) == (
            counts.decoded + counts.refused + counts.repeated + counts.frozen + counts.backward
        )
