# SPDX-License-Identifier: Apache-2.0
"""One tick's decision: a fresh target and what it names, and every reason to hold."""

from pathlib import Path

from control_rig import make_state, MS, PERIOD_NS, Rig
import numpy as np
import pytest

from oxygen_ros.control import (
    Arming,
    ArmState,
    ChunkBuffer,
    ControlTick,
    hold_reasons,
    JointLimits,
    TickConfig,
)


def reason_after(rig, **step):
    decision = rig.step(**step)
    assert decision.target.held is bool(decision.target.hold_reason)
    return decision.target.hold_reason


def test_a_fresh_target_names_its_chunk_observation_and_age():
    rig = Rig()
    rig.add(np.arange(16.0), lead_ms=-50, observation_ns=rig.now_ns - 60 * MS)
    decision = rig.step()
    target = decision.target
    assert (target.tick, target.deadline_ns, target.held) == (0, rig.now_ns - PERIOD_NS, False)
    assert target.values.tolist() == [2.5]
    assert target.chunk_ids == (1,)
    assert target.observation_ids == (101,)
    assert target.weights == (1.0,)
    assert target.observation_age_ns == 60 * MS
    assert decision.armed
    assert decision.state is ArmState.ARMED


def test_without_a_chunk_the_measured_pose_is_held():
    rig = Rig(pose=(0.5, -0.25))
    target = rig.step().target
    assert target.hold_reason == hold_reasons.NO_CHUNK
    assert target.values.tolist() == [0.5, -0.25]
    assert (target.chunk_ids, target.observation_age_ns) == ((), None)


def test_silence_holds_the_last_target_which_still_names_its_chunk():
    rig = Rig()
    rig.add([1.0, 2.0])
    rig.step()
    last = rig.step().target
    held = rig.step().target
    assert held.hold_reason == hold_reasons.CHUNK_EXHAUSTED
    assert held.values.tolist() == last.values.tolist() == [2.0]
    assert held.chunk_ids == (1,)


def test_an_observation_too_old_holds_until_a_newer_one_comes():
    rig = Rig(max_observation_age_ms=400.0)
    rig.add(np.ones(16), observation_ns=rig.now_ns - 390 * MS)
    assert reason_after(rig) == ''
    assert reason_after(rig) == hold_reasons.STALE_OBSERVATION
    rig.add(np.ones(16), chunk_id=2)
    assert reason_after(rig) == ''


def test_missing_old_or_broken_joint_states_hold_and_fresh_ones_go_on():
    rig = Rig(pose=(0.0, 0.0), state_max_age_s=0.2)
    rig.add(np.zeros((50, 2)))
    assert reason_after(rig) == ''
    old = make_state(rig.now_ns - 201 * MS, rig.pose)
    assert reason_after(rig, state=old) == hold_reasons.STALE_STATE
    for broken in ([np.nan, 0.0], [0.0], [0.0] * 3):
        state = make_state(rig.now_ns, broken)
        assert reason_after(rig, state=state) == hold_reasons.BAD_STATE
    assert reason_after(rig, state=None) == hold_reasons.NO_STATE
    assert reason_after(rig) == ''


def test_before_the_joints_are_known_nothing_is_sent():
    rig = Rig(pose=(0.7,))
    rig.add(np.full(16, 0.7))
    decision = rig.step(state=None)
    assert np.isnan(decision.target.values).all()
    assert not decision.armed
    assert decision.target.hold_reason == hold_reasons.NO_STATE
    assert rig.step().armed


def test_a_robot_without_joint_states_may_be_declared():
    rig = Rig(require_state=False)
    assert not rig.step(state=None).armed
    rig.add([3.0, 3.0])
    decision = rig.step(state=None)
    assert (decision.target.values.tolist(), decision.armed) == ([3.0], True)


@pytest.mark.parametrize(
    'values, reason',
    [
        (np.full((16, 1), np.nan), hold_reasons.REFUSED_NONFINITE),
        (np.zeros((16, 3)), hold_reasons.REFUSED_LENGTH),
    ],
)
def test_a_broken_chunk_holds_and_the_next_good_one_goes_on(values, reason):
    rig = Rig()
    rig.add(np.ones(16))
    rig.step()
    rig.add(values, chunk_id=2)
    decision = rig.step()
    assert decision.target.hold_reason == reason
    assert decision.target.values.tolist() == [1.0]
    rig.add(np.ones(16), chunk_id=3)
    assert reason_after(rig) == ''


def test_a_chunk_without_time_is_refused():
    rig = Rig()
    rig.add([1.0, 2.0], step_ns=0)
    assert reason_after(rig) == hold_reasons.REFUSED_TIMING


def test_joints_that_do_not_follow_hold_the_arm_and_it_goes_on_when_they_do():
    rig = Rig(limits={'max_tracking_error': 0.5})
    rig.add(np.linspace(0.0, 4.9, 50))
    rig.follows = False
    reasons = [reason_after(rig) for _ in range(10)]
    assert reasons == [''] * 7 + [hold_reasons.TRACKING_ERROR] * 3
    rig.pose[:] = 0.3
    assert reason_after(rig) == ''


def test_every_hold_reason_is_described():
    names = {
        value
        for name, value in vars(hold_reasons).items()
        if name.isupper() and isinstance(value, str)
    }
    assert names == set(hold_reasons.DESCRIPTIONS)
    page = (Path(__file__).parents[2] / 'doc' / 'control.md').read_text(encoding='utf-8')
    assert [name for name in sorted(names) if f'`{name}`' not in page] == []


@pytest.mark.parametrize(
    'settings, message',
    [
        ({'num_joints': 0}, 'num_joints: expected at least 1, got 0'),
        ({'num_joints': 1, 'rate_hz': 0.0}, 'actuation.rate_hz: expected 1 to 1000, got 0'),
        (
            {'num_joints': 1, 'space': ('joint_effort',)},
            'actuation.space: expected joint_position, joint_delta, joint_velocity, got joint_e',
        ),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        TickConfig(**settings)


def test_a_buffer_for_other_joints_is_refused():
    with pytest.raises(ValueError, match='buffer: expected 2 joints, got 1'):
        ControlTick(TickConfig(2), JointLimits.create(2), ChunkBuffer(1), Arming())
