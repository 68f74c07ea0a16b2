# SPDX-License-Identifier: Apache-2.0
"""Limits: what is bounded, what is refused."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from oxygen_ros.control import ActuationMode, hold_reasons, JointLimits, Limiter

PERIOD_S = 0.02


def limiter(num_joints=2, mode=ActuationMode.POSITION, **limits):
    return Limiter(JointLimits.create(num_joints, **limits), mode, PERIOD_S)


def test_without_limits_a_target_passes_unchanged():
    target = [1e6, -1e6]
    assert limiter().apply(target, [0.0, 0.0], [0.0, 0.0]) == (target, '')


def test_positions_are_clamped_joint_by_joint():
    values, _ = limiter(min_position=[-1.0, np.nan], max_position=[1.0, np.inf]).apply(
        [-5.0, -5.0], None, None
    )
    assert values == [-1.0, -5.0]


def test_the_smaller_of_step_and_velocity_bounds_the_change():
    values, _ = limiter(max_step=[0.1, 0.001], max_velocity=1.0).apply(
        [9.0, -9.0], [0.0, 0.0], None
    )
    assert values == pytest.approx([0.02, -0.001])


def test_from_outside_the_limits_the_way_back_is_stepwise():
    values, _ = limiter(1, max_position=1.0, max_step=0.1).apply([3.0], [2.0], None)
    assert values == pytest.approx([1.9])


@pytest.mark.parametrize(
    'target, reason',
    [
        ([0.0, np.nan], hold_reasons.REFUSED_NONFINITE),
        ([np.inf, 0.0], hold_reasons.REFUSED_NONFINITE),
        ([0.0], hold_reasons.REFUSED_LENGTH),
        ([0.0] * 3, hold_reasons.REFUSED_LENGTH),
        ([], hold_reasons.REFUSED_LENGTH),
    ],
)
def test_a_broken_target_is_refused(target, reason):
    assert limiter().apply(target, [0.0, 0.0], None) == (None, reason)


def test_joints_that_do_not_follow_are_noticed_unless_they_are_not_meant_to():
    bounded = limiter(max_tracking_error=[0.5, np.inf])
    far = [0.6, 9.0]
    assert bounded.apply(far, far, [0.0, 0.0]) == (None, hold_reasons.TRACKING_ERROR)
    assert bounded.apply(far, far, [0.0, 0.0], check_tracking=False)[1] == ''
    assert bounded.apply(far, far, [0.2, 0.0])[1] == ''


def test_a_velocity_is_bounded_in_size_and_in_change():
    values, _ = limiter(mode=ActuationMode.VELOCITY, max_velocity=1.0, max_step=[0.1, 9.0]).apply(
        [5.0, -5.0], [0.0, 0.0], [0.0, 0.0]
    )
    assert values == pytest.approx([0.1, -1.0])


def test_a_velocity_never_carries_a_joint_out_of_its_limits():
    bounded = limiter(3, ActuationMode.VELOCITY, min_position=-1.0, max_position=1.0)
    values, _ = bounded.apply([2.0, 2.0, -2.0], [2.0] * 3, [0.99, 1.5, 1.5])
    assert values == pytest.approx([0.5, 0.0, -2.0])


@given(
    target=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3),
    previous=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
)
def test_no_step_exceeds_its_bound(target, previous):
    bounded = limiter(
        3,
        min_position=-2.0,
        max_position=2.0,
        max_velocity=[1.0, 2.0, np.nan],
        max_step=[0.5, 0.01, 0.02],
    )
    values, reason = bounded.apply(target, previous, None)
    assert not reason
    for value, before, step in zip(values, previous, (0.02, 0.01, 0.02)):
        assert abs(value - before) <= step + 1e-9
        assert abs(value) <= max(2.0, abs(before))


@pytest.mark.parametrize(
    'settings, message',
    [
        ({'max_step': 0.0}, 'max_step: expected above 0'),
        ({'max_velocity': [1.0, -1.0]}, 'max_velocity: expected above 0'),
        ({'max_step': [1.0] * 3}, r'max_step: expected 1 or 2 values, got shape \(3,\)'),
        ({'min_position': 1.0, 'max_position': 0.0}, 'min_position: expected at most'),
    ],
)
def test_limits_that_make_no_sense_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        JointLimits.create(2, **settings)


def test_the_tighter_of_two_limits_counts():
    ours = JointLimits.create(2, min_position=[-1.0, -2.0], max_position=2.0, max_velocity=1.0)
    theirs = JointLimits.create(
        2, min_position=-1.5, max_position=[3.0, 1.0], max_velocity=[0.5, 2.0], max_step=0.1
    )
    both = ours.tightened(theirs)
    assert both.min_position.tolist() == [-1.0, -1.5]
    assert both.max_position.tolist() == [2.0, 1.0]
    assert both.max_velocity.tolist() == [0.5, 1.0]
    assert both.max_step.tolist() == [0.1, 0.1]
    with pytest.raises(ValueError, match='expected at most 1 for joint 1, .* got 2'):
        JointLimits.create(2, min_position=[0.0, 2.0]).tightened(theirs)


def test_settings_of_the_limiter_out_of_range_are_named():
    with pytest.raises(ValueError, match='period_s: expected above 0, got 0.0'):
        Limiter(JointLimits.create(1), ActuationMode.POSITION, 0.0)
    with pytest.raises(ValueError, match='num_joints: expected at least 1, got 0'):
        JointLimits.create(0)
