# SPDX-License-Identifier: Apache-2.0
"""Builders of chunks and states, and a tick on virtual time, for the tests of control."""

import numpy as np

from oxygen_ros.control import Arming, ChunkBuffer, ControlTick, JointLimits, TickConfig
from oxygen_ros.types import ActionChunk, Provenance, RobotState

MS = 1_000_000
PERIOD_NS = 20 * MS
START_NS = 1_000_000 * MS


def make_chunk(
    chunk_id, start_ns, values, *, step_ns=PERIOD_NS, epoch=0, observation_ns=None, started_ns=None
):
    """A chunk; values that are not an array are one joint's steps."""
    values = np.asarray(values, dtype=np.float32)
    if values.ndim == 1:
        values = values[:, None]
    started_ns = start_ns if started_ns is None else started_ns
    return ActionChunk(
        chunk_id,
        epoch,
        values,
        start_ns,
        start_ns,
        step_ns,
        start_ns if observation_ns is None else observation_ns,
        started_ns,
        started_ns + MS,
        Provenance(100 + chunk_id, start_ns, ('front',), (start_ns,), start_ns, 'sum'),
    )


def make_state(steady_ns, positions):
    return RobotState(steady_ns, steady_ns, np.atleast_1d(np.asarray(positions, np.float32)))


class Rig:
    """An armed tick on virtual time, whose robot reaches each target at once."""

    def __init__(self, pose=(0.0,), *, armed=True, blend_ms=100, limits=None, **config):
        self.pose = np.atleast_1d(np.asarray(pose, np.float32))
        num_joints = len(self.pose)
        settings = {'activation_ramp_s': 0.0, 'recovery_ramp_s': 0.0, **config}
        self.config = TickConfig(num_joints, **settings)
        self.buffer = ChunkBuffer(num_joints, PERIOD_NS, blend_ms * MS, deltas=self.config.deltas)
        self.arming = Arming()
        if armed:
            self.arming.enable()
        self.limits = JointLimits.create(num_joints, **(limits or {}))
        self.tick = ControlTick(self.config, self.limits, self.buffer, self.arming)
        self.number = 0
        self.follows = True

    @property
    def now_ns(self):
        """Deadline of the next tick."""
        return START_NS + self.number * PERIOD_NS

    def add(self, values, *, chunk_id=1, lead_ms=0, **settings):
        self.buffer.add(make_chunk(chunk_id, self.now_ns + lead_ms * MS, values, **settings))

    def step(self, *, state='measured', skip=0):
        self.number += skip
        if isinstance(state, str):
            state = make_state(self.now_ns, self.pose)
        decision = self.tick.decide(self.number, self.now_ns, state)
        self.number += 1
        if self.follows and decision.armed and not decision.target.held:
            self.pose = decision.target.values.astype(np.float32)
        return decision
