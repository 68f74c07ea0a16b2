# SPDX-License-Identifier: Apache-2.0
"""Joints are found by name; nothing that is not a measured position gets through."""

from array import array
import math

from hypothesis import given, strategies
import numpy as np
import pytest

from oxygen_ros.ingest import JointMapper, JointStateError


@pytest.fixture
def mapper():
    return JointMapper(['shoulder', 'elbow', 'wrist'])


def test_the_order_of_the_message_does_not_matter(mapper):
    for names in (
        ['shoulder', 'elbow', 'wrist'],
        ['wrist', 'shoulder', 'elbow'],
        ['gripper', 'elbow', 'wrist', 'x', 'shoulder'],
    ):
        value_of = {'shoulder': 1.0, 'elbow': 2.0, 'wrist': 3.0}
        positions = [value_of.get(name, math.nan) for name in names]
        np.testing.assert_array_equal(mapper.map(names, positions), [1.0, 2.0, 3.0])


def test_positions_come_as_any_sequence(mapper):
    names = ('elbow', 'wrist', 'shoulder')
    for positions in ([1, 2, 3], array('d', [1, 2, 3]), np.array([1, 2, 3], np.float32)):
        values = mapper.map(names, positions)
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, [3.0, 1.0, 2.0])


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
def test_a_needed_position_that_is_not_finite_is_refused_by_name(mapper, bad):
    with pytest.raises(JointStateError, match=r'^position: expected finite values, got elbow = '):
        mapper.map(['shoulder', 'elbow', 'wrist'], [0.0, bad, 0.0])


def test_a_position_of_another_joint_may_be_nan(mapper):
    values = mapper.map(['shoulder', 'elbow', 'wrist', 'other'], [1.0, 2.0, 3.0, math.nan])
    np.testing.assert_array_equal(values, [1.0, 2.0, 3.0])


def test_missing_joints_are_named(mapper):
    with pytest.raises(JointStateError, match='expected also elbow, wrist, got only'):
        mapper.map(['shoulder'], [0.0])


def test_a_joint_named_twice_is_refused(mapper):
    with pytest.raises(JointStateError, match='expected each joint once, got wrist more than'):
        mapper.map(['shoulder', 'elbow', 'wrist', 'wrist'], [0.0] * 4)


@pytest.mark.parametrize('positions', [[], [0.0, 0.0], [0.0] * 4])
def test_another_number_of_positions_than_names_is_refused(mapper, positions):
    with pytest.raises(JointStateError, match=f'expected 3 values.*got {len(positions)}'):
        mapper.map(['shoulder', 'elbow', 'wrist'], positions)


def test_an_order_that_changes_midstream_is_followed(mapper):
    np.testing.assert_array_equal(mapper.map(['shoulder', 'elbow', 'wrist'], [1, 2, 3]), [1, 2, 3])
    np.testing.assert_array_equal(mapper.map(['wrist', 'elbow', 'shoulder'], [1, 2, 3]), [3, 2, 1])
    with pytest.raises(JointStateError):
        mapper.map(['wrist'], [1])
    np.testing.assert_array_equal(mapper.map(['wrist', 'elbow', 'shoulder'], [1, 2, 3]), [3, 2, 1])


def test_a_caller_that_reuses_its_list_of_names_is_not_misread(mapper):
    names = ['shoulder', 'elbow', 'wrist']
    mapper.map(names, [1, 2, 3])
    names.reverse()
    np.testing.assert_array_equal(mapper.map(names, [1, 2, 3]), [3, 2, 1])


@pytest.mark.parametrize('names', [[], ['a', 'a']])
def test_a_robot_without_joints_or_with_one_twice_is_a_mistake(names):
    with pytest.raises(ValueError, match='joint_names'):
        JointMapper(names)


@given(
    names=strategies.lists(strategies.sampled_from('abcd'), max_size=6),
    positions=strategies.lists(strategies.floats(), max_size=6),
)
def test_random_messages_give_finite_positions_or_a_joint_state_error(names, positions):
    try:
        values = JointMapper(['a', 'b']).map(names, positions)
    except JointStateError:
        return
    assert np.isfinite(values).all() and values.shape == (2,)
