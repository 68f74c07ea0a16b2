# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a chunk mean: positions, changes or speeds, and what is refused."""

from control_rig import make_chunk, MS, PERIOD_NS, Rig, START_NS
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from oxygen_ros.control import (
    ActuationMode,
    ChunkBuffer,
    hold_reasons,
    parse_action_spaces,
    TickConfig,
)


def values(rig, num_ticks):
    return [rig.step().target.values.tolist() for _ in range(num_ticks)]


def test_each_space_is_sent_as_positions_or_as_velocities():
    position, velocity = ActuationMode.POSITION, ActuationMode.VELOCITY
    assert parse_action_spaces(['joint_position'], 2) == (position, ())
    assert parse_action_spaces(['joint_delta'], 2) == (position, (True, True))
    assert parse_action_spaces(['joint_delta', 'joint_position'], 2) == (position, (True, False))
    assert parse_action_spaces(['joint_velocity'], 2) == (velocity, ())


@pytest.mark.parametrize(
    ('names', 'message'),
    [
        (['joint_delta'] * 3, 'expected 1 or 2 values, one for each of the joints, got 3'),
        (['joint_delta', 'joint_velocity'], 'expected joint_velocity for all joints or for none'),
    ],
)
def test_spaces_that_do_not_go_together_are_named(names, message):
    with pytest.raises(ValueError, match=message):
        parse_action_spaces(names, 2)


@pytest.mark.parametrize(
    ('name', 'reason'),
    [
        ('joint_effort', 'zero effort drops it'),
        ('end_effector_pose', "the arm's kinematics"),
        ('end_effector_twist', "the arm's kinematics"),
        ('torque', 'got torque'),
    ],
)
def test_spaces_in_which_joints_cannot_be_kept_safe_are_refused(name, reason):
    with pytest.raises(ValueError, match='expected joint_position') as caught:
        parse_action_spaces([name], 3)
    assert reason in str(caught.value)


def test_changes_add_up_from_the_measured_joints():
    rig = Rig((0.5, -1.0), space=('joint_delta',))
    rig.add([[0.01, 0.0], [0.02, -0.1], [0.03, 0.1]])
    assert values(rig, 3) == [
        pytest.approx([0.51, -1.0]),
        pytest.approx([0.53, -1.1]),
        pytest.approx([0.56, -1.0]),
    ]
    target = rig.step().target
    assert target.hold_reason == hold_reasons.CHUNK_EXHAUSTED
    assert target.values == pytest.approx([0.56, -1.0])


def test_changes_go_on_from_the_last_target_wherever_the_joints_lag():
    rig = Rig(space=('joint_delta',))
    rig.follows = False
    rig.add([0.1] * 5)
    assert [row[0] for row in values(rig, 5)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_after_a_hold_changes_go_on_from_the_held_target_and_from_the_joints_when_enabled_anew():
    rig = Rig(space=('joint_delta',), blend_ms=0)
    rig.add([0.1] * 3)
    values(rig, 5)  # two of them held
    rig.add([0.1] * 3, chunk_id=2)
    assert rig.step().target.values == pytest.approx([0.4])
    rig.arming.takeover()
    rig.pose = np.array([2.0], np.float32)
    rig.step()
    rig.arming.enable()
    rig.add([0.1] * 3, chunk_id=3)
    assert rig.step().target.values == pytest.approx([2.1])


def test_a_ramp_eases_changes_in_from_rest():
    rig = Rig((0.5,), space=('joint_delta',), activation_ramp_s=0.1)
    rig.add([0.1] * 9)
    steps = np.diff([0.5, *(row[0] for row in values(rig, 9))])
    assert steps[0] == 0.0
    assert (np.diff(steps) >= -1e-9).all()
    assert steps[-1] == pytest.approx(0.1)


def test_a_change_is_bounded_like_any_step_and_not_made_up_for():
    rig = Rig(space=('joint_delta',), limits={'max_step': 0.05, 'max_position': 0.12})
    rig.add([0.1, 0.1, 0.1, -0.02])
    assert [row[0] for row in values(rig, 4)] == pytest.approx([0.05, 0.1, 0.12, 0.1])


def test_a_skipped_tick_loses_its_change():
    rig = Rig(space=('joint_delta',))
    rig.add([0.1, 0.2, 0.4])
    rig.step()
    assert rig.step(skip=1).target.values == pytest.approx([0.5])


@given(
    offset_ns=st.integers(-40 * MS, 40 * MS),
    step_ms=st.integers(5, 70),
    changes=st.lists(st.floats(-1.0, 1.0, width=32), min_size=1, max_size=8),
)
def test_the_ticks_add_up_to_all_that_a_chunk_says(offset_ns, step_ms, changes):
    buffer = ChunkBuffer(1, PERIOD_NS, deltas=(True,))
    start_ns = START_NS + 200 * MS + offset_ns
    chunk = make_chunk(1, start_ns, changes, step_ns=step_ms * MS)
    end_ns = start_ns + (len(changes) - 1) * chunk.step_ns
    buffer.add(chunk)
    total, t_ns = 0.0, START_NS
    while (sample := buffer.sample(t_ns)) is not None:
        total += sample.values[0]
        t_ns += PERIOD_NS
    last_ns = t_ns - PERIOD_NS  # what lies after the last tick is less than a tick's share
    rest = float(changes[-1]) * min(max(end_ns - last_ns, 0), chunk.step_ns) / chunk.step_ns
    if end_ns - last_ns <= chunk.step_ns:
        assert total + rest == pytest.approx(float(np.sum(changes)), abs=1e-5)


def test_changes_need_positions_and_measured_joints():
    with pytest.raises(ValueError, match='joint_velocity for all joints or for none'):
        TickConfig(2, space=('joint_delta', 'joint_velocity'))
    with pytest.raises(ValueError, match='no joint_delta without actuation.require_state'):
        TickConfig(1, space=('joint_delta',), require_state=False)


def test_an_arm_may_be_moved_by_changes_and_its_gripper_by_positions():
    rig = Rig(
        (0.5, 0.0), space=('joint_delta', 'joint_position'), limits={'max_step': [1.0, 0.75]}
    )
    rig.add([[0.125, 1.0], [0.125, 1.0], [-0.25, 0.5]])
    assert values(rig, 4) == [[0.625, 0.75], [0.75, 1.0], [0.5, 0.5], [0.5, 0.5]]
    rig.add([[0.0, 0.25]] * 3, chunk_id=2)
    rig.step()  # the seam begins with what was before it
    assert rig.step().target.values[0] == 0.5


def test_a_position_rests_at_its_first_step_before_the_chunk_begins():
    rig = Rig((0.5, 0.5), space=('joint_delta', 'joint_position'))
    rig.add([[0.125, 0.25]] * 2, lead_ms=40)
    assert values(rig, 4) == [[0.5, 0.25], [0.5, 0.25], [0.625, 0.25], [0.75, 0.25]]


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [([0.0, np.nan], hold_reasons.REFUSED_NONFINITE), ([[0.0, 0.0]], hold_reasons.REFUSED_LENGTH)],
)
def test_broken_changes_hold(changes, reason):
    rig = Rig(space=('joint_delta',))
    rig.add(changes)
    assert rig.step().target.hold_reason == reason


def test_in_a_dry_run_nobody_is_expected_to_follow():
    for dry_run, reason in ((True, ''), (False, hold_reasons.TRACKING_ERROR)):
        rig = Rig(dry_run=dry_run, limits={'max_tracking_error': 0.1})
        rig.follows = False
        rig.add([0.5] * 3)
        rig.step()
        assert rig.step().target.hold_reason == reason


def test_until_the_limits_are_known_the_joints_are_held_where_they_are():
    rig = Rig((0.3,), awaits_limits=True)
    rig.add([1.0] * 9)
    target = rig.step().target
    assert (target.hold_reason, target.values) == (hold_reasons.NO_LIMITS, pytest.approx([0.3]))
    rig.tick.reconfigure(TickConfig(1, activation_ramp_s=0.0), rig.limits)
    assert rig.step().target.values == pytest.approx([1.0])
