# SPDX-License-Identifier: Apache-2.0
"""Whatever the chunks do, no step between consecutive targets exceeds the per-joint limit."""

from control_rig import make_chunk, make_state, MS, PERIOD_NS, START_NS
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from oxygen_ros.control import (
    ActuationMode,
    Arming,
    ChunkBuffer,
    ControlTick,
    JointLimits,
    TickConfig,
)

NUM_JOINTS = 3
NUM_TICKS = 150
MAX_STEP = np.array([0.05, 0.5, 0.01])
# The last joint's step is bounded by its speed where targets are positions.
LIMITS = {
    ActuationMode.POSITION: {'max_step': [0.05, 0.5, np.inf], 'max_velocity': [9.0, np.inf, 0.5]},
    ActuationMode.VELOCITY: {'max_step': MAX_STEP},
}

EVENTS = st.dictionaries(
    st.integers(0, NUM_TICKS - 1),
    st.sampled_from(
        [
            'reset',
            'engine',
            'stop',
            'hold',
            'takeover',
            'disarm',
            'enable',
            'nan',
            'length',
            'restart',
            'switch',
            'blind',
            'nan_state',
            'stall',
        ]
    ),
    max_size=16,
)


class Flight:
    """A run of a policy whose chunks are late, lost, broken and at odds with each other."""

    def __init__(self, seed, mode, pose, delay_ms, loss, blend_ms, ramp_ms, deltas=()):
        if deltas:
            space = tuple('joint_delta' if delta else 'joint_position' for delta in deltas)
        else:
            space = (f'joint_{mode.value}',)
        self.rng = np.random.default_rng(seed)
        self.mode = mode
        self.pose = np.array(pose, dtype=np.float64)
        self.delay_ms = delay_ms
        self.loss = loss
        self.buffer = ChunkBuffer(NUM_JOINTS, PERIOD_NS, blend_ms * MS, deltas=deltas)
        self.arming = Arming()
        self.arming.enable()
        self.config = TickConfig(
            NUM_JOINTS,
            space=space,
            activation_ramp_s=ramp_ms * 1e-3,
            recovery_ramp_s=blend_ms * 1e-3,
            max_observation_age_ms=900.0,
            state_max_age_s=0.2,
        )
        self.limits = JointLimits.create(
            NUM_JOINTS, min_position=-3.0, max_position=3.0, **LIMITS[mode]
        )
        self.tick = ControlTick(self.config, self.limits, self.buffer, self.arming)
        self.on_the_way = []
        self.next_chunk_id = 1
        self.blind_until_ns = 0

    def think(self, now_ns, fault):
        """Start a pass whose chunk arrives after a random delay, or never."""
        shape = (int(self.rng.integers(1, 50)), NUM_JOINTS + (fault == 'length'))
        values = self.rng.normal(0.0, 3.0, shape)
        if fault == 'nan':
            values[self.rng.integers(len(values)), 0] = np.nan
        chunk = make_chunk(
            self.next_chunk_id,
            now_ns,
            values,
            epoch=self.buffer.epoch,
            step_ns=int(self.rng.integers(5, 60)) * MS,
        )
        self.next_chunk_id += 1
        if self.rng.random() >= self.loss:
            self.on_the_way.append((now_ns + int(self.rng.integers(*self.delay_ms)) * MS, chunk))

    def deliver(self, now_ns):
        for arrival_ns, chunk in sorted(self.on_the_way, key=lambda item: item[0]):
            if arrival_ns <= now_ns:
                self.buffer.add(chunk)
        self.on_the_way = [item for item in self.on_the_way if item[0] > now_ns]

    def befall(self, event, number, now_ns):
        """Let something happen; return how many ticks are missed, and whether it starts anew."""
        if event in ('reset', 'engine'):
            self.buffer.reset()
            if event == 'engine':  # another process, which counts from the beginning
                self.next_chunk_id = 1
        elif event in ('stop', 'hold', 'takeover', 'disarm', 'enable'):
            getattr(self.arming, event)()
        elif event == 'restart':
            last = self.tick.hold(number, now_ns, 'deactivated')
            assert last.target.held
            self.buffer.reset()
            self.tick.restart()
        elif event == 'switch':
            self.tick.reconfigure(self.config, self.limits)
        elif event == 'blind':
            self.blind_until_ns = now_ns + 300 * MS
        return int(self.rng.integers(1, 30)) if event == 'stall' else 0, event in (
            'restart',
            'switch',
        )

    def state(self, now_ns, event):
        """Return what the tick is given, and the pose in it if it is of use."""
        measured = self.pose.astype(np.float32)
        if event == 'nan_state':
            return make_state(now_ns, measured * np.nan), None
        if now_ns < self.blind_until_ns:
            return make_state(now_ns - 900 * MS, measured), None
        return make_state(now_ns, measured), measured.astype(np.float64)

    def fly(self, events):
        """Yield the measured pose or None, whether the tick starts afresh, and the decision."""
        generation, number = None, 0
        for event in (events.get(index, '') for index in range(NUM_TICKS)):
            now_ns = START_NS + number * PERIOD_NS
            num_missed, anew = self.befall(event, number, now_ns)
            number += num_missed
            now_ns = START_NS + number * PERIOD_NS
            if self.rng.random() < 0.3 or event in ('nan', 'length'):
                self.think(now_ns, event)
            self.deliver(now_ns)
            state, measured = self.state(now_ns, event)
            view = self.arming.view()
            decision = self.tick.decide(number, now_ns, state)
            yield measured, anew or view.generation != generation, decision
            generation = view.generation
            number += 1
            if decision.armed:
                speed = (
                    decision.target.values
                    if self.mode is ActuationMode.VELOCITY
                    else (0.8 * (decision.target.values - self.pose) / 0.02)
                )
                self.pose = self.pose + speed * 0.02
            elif view.state == 'takeover':
                self.pose = self.pose + self.rng.normal(0.0, 0.1, NUM_JOINTS)


FLIGHTS = {
    'seed': st.integers(0, 2**32 - 1),
    'pose': st.tuples(*[st.floats(-4.0, 4.0)] * NUM_JOINTS),
    'delay_ms': st.sampled_from([(20, 21), (20, 100), (80, 200), (20, 701), (600, 701)]),
    'loss': st.sampled_from([0.0, 0.3, 0.9]),
    'blend_ms': st.sampled_from([0, 100, 300]),
    'ramp_ms': st.sampled_from([0, 500]),
    'events': EVENTS,
}


def check_provenance(target):
    assert target.held is bool(target.hold_reason)
    assert len(target.weights) == len(target.chunk_ids) == len(target.observation_ids) <= 3
    if target.weights:
        assert sum(target.weights) == pytest.approx(1.0)
    else:
        assert target.held


@settings(max_examples=200, deadline=None)
@given(deltas=st.sampled_from([(), (True, True, False), (True,) * 3]), **FLIGHTS)
def test_consecutive_positions_stay_within_the_step_limit(events, **flight):
    previous = None  # nothing to step from: the next target is where the joints are
    for measured, afresh, decision in Flight(mode=ActuationMode.POSITION, **flight).fly(events):
        target = decision.target
        check_provenance(target)
        if afresh or decision.state == 'takeover':
            previous = None
        if previous is None:
            previous = measured
        if previous is None:
            assert np.isnan(target.values).all() and not decision.armed
            continue
        assert np.isfinite(target.values).all()
        assert (np.abs(target.values - previous) <= MAX_STEP + 1e-9).all()
        assert (np.abs(target.values) <= np.maximum(3.0, np.abs(previous)) + 1e-9).all()
        if target.held:
            assert target.values.tolist() == previous.tolist()
        previous = target.values


@settings(max_examples=40, deadline=None)
@given(**FLIGHTS)
def test_velocities_change_within_the_step_limit_and_every_hold_is_zero(events, **flight):
    previous = np.zeros(NUM_JOINTS)
    for measured, afresh, decision in Flight(mode=ActuationMode.VELOCITY, **flight).fly(events):
        target = decision.target
        check_provenance(target)
        if target.held:
            assert not target.values.any()
        else:
            if afresh:
                previous = np.zeros(NUM_JOINTS)
            # Coming to rest at an end stop may take a larger step than the limit.
            changes = np.abs(target.values) - np.abs(previous)
            assert (changes <= MAX_STEP + 1e-9).all()
            assert measured is not None
            after = measured + target.values * 0.02
            inside = np.abs(measured) <= 3.0
            assert (np.abs(after[inside]) <= 3.0 + 1e-9).all()
        previous = target.values


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), pose=st.tuples(*[st.floats(-3.0, 3.0)] * NUM_JOINTS))
def test_from_any_pose_the_first_target_is_the_measured_one(seed, pose):
    flight = Flight(seed, ActuationMode.POSITION, pose, (20, 21), 0.0, 100, 500)
    fresh = 0
    for measured, _, decision in flight.fly({}):
        if not decision.target.held:
            fresh += 1
            assert decision.target.values == pytest.approx(measured)
            break
    assert fresh == 1
