# SPDX-License-Identifier: Apache-2.0
"""Groups of joints: what the parameters make, and which names of topics they take."""

from __future__ import annotations

import itertools

import pytest

from oxygen_ros.robot.actuator_groups import GroupSettings, is_topic
from oxygen_ros.setting import make, SettingError

JOINTS = ('shoulder', 'elbow', 'gripper')
TWO = {
    'actuation.groups': ['arm', 'hand'],
    'actuation.joint_groups': ['arm', 'hand', 'arm'],
    'actuation.group_topics': [''],
    'actuation.group_interfaces': [''],
}


def groups_of(values):
    return make(GroupSettings, values, joints=JOINTS).groups


def test_without_groups_all_joints_form_one():
    (group,) = groups_of({})
    assert group.joints == JOINTS and group.indices == (0, 1, 2)
    assert (group.topic, group.interface) == ('~/joint_trajectory', 'trajectory')


def test_groups_keep_the_order_of_the_joints_and_have_topics_by_name():
    arm, hand = groups_of({**TWO, 'actuation.group_interfaces': ['', 'commands']})
    assert (arm.joints, arm.indices) == (('shoulder', 'gripper'), (0, 2))
    assert (hand.joints, hand.indices) == (('elbow',), (1,))
    assert (arm.topic, hand.topic) == ('~/arm/joint_trajectory', '~/hand/commands')


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'groups': ['arm', 'arm']}, 'actuation.groups: expected different names'),
        ({'joint_groups': ['arm', 'hand']}, 'actuation.joint_groups: expected 3 values'),
        (
            {'joint_groups': ['arm', 'leg', 'hand']},
            "expected names from actuation.groups, got ['leg']",
        ),
        ({'joint_groups': ['arm', 'arm', 'arm']}, 'expected at least one joint of hand, got none'),
        ({'group_topics': ['/x']}, 'actuation.group_topics: expected 2 values'),
        ({'group_topics': ['/x', '/x']}, 'actuation.group_topics: expected different topics'),
        (
            {'group_topics': ['/x', 'a b']},
            "actuation.group_topics: expected names of topics, got 'a b'",
        ),
        (
            {'group_interfaces': ['trajectory', 'effort']},
            "actuation.group_interfaces: expected one of trajectory, commands, got 'effort'",
        ),
    ],
)
def test_groups_that_do_not_fit_are_refused(change, message):
    values = {**TWO, **{f'actuation.{name}': value for name, value in change.items()}}
    with pytest.raises(SettingError) as caught:
        groups_of(values)
    assert message in str(caught.value)


def test_a_name_is_a_topic_where_ros_takes_it():
    rclpy = pytest.importorskip('rclpy', reason='the rule is that of ROS')
    from rclpy.exceptions import InvalidTopicNameException
    from rclpy.expand_topic_name import expand_topic_name
    from rclpy.validate_full_topic_name import validate_full_topic_name

    assert rclpy

    def is_taken(name):
        try:
            validate_full_topic_name(expand_topic_name(name, 'node', '/ns'))
        except (InvalidTopicNameException, ValueError):
            return False
        return True

    for length in range(6):
        for letters in itertools.product('aZ0_/~ .', repeat=length):
            name = ''.join(letters)
            # ROS takes `~a` for `~/a`, where it refuses `~ab`.
            if not (length == 2 and name[0] == '~' and name[1] != '/'):
                assert is_topic(name) == is_taken(name), name
    assert not is_topic('a\n') and not is_topic('ä')
