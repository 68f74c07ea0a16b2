# SPDX-License-Identifier: Apache-2.0
"""Groups of joints: each target is split over their topics, each in its own form."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the groups are topics of a ROS node')
from rig import JOINTS, overrides, Rig
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.nodes.parameters.actuator_groups import actuator_groups
from oxygen_ros.nodes.parameters.declare import ParameterError

TWO = {
    'actuation.groups': ['arm', 'hand'],
    'actuation.joint_groups': ['arm', 'hand', 'arm'],
    'actuation.group_topics': [''],
    'actuation.group_interfaces': [''],
}


def test_without_groups_all_joints_form_one():
    none = {'actuation.groups': ['']}
    (group,) = actuator_groups(none, JOINTS)
    assert group.joints == JOINTS and group.indices == (0, 1, 2)
    assert (group.topic, group.interface) == ('~/joint_trajectory', 'trajectory')


def test_groups_keep_the_order_of_the_joints_and_have_topics_by_name():
    arm, hand = actuator_groups({**TWO, 'actuation.group_interfaces': ['', 'commands']}, JOINTS)
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
    with pytest.raises(ParameterError) as caught:
        actuator_groups(values, JOINTS)
    assert message in str(caught.value)


def test_each_group_gets_its_part_of_every_target():
    rig = Rig()
    node = OxygenNode(
        context=rig.context,
        parameter_overrides=overrides(
            actuation__groups=['arm', 'hand'],
            actuation__joint_groups=['arm', 'hand', 'arm'],
            actuation__group_topics=['', '/hand_controller/commands'],
            actuation__group_interfaces=['trajectory', 'commands'],
        ),
    )
    rig.executor.add_node(node)
    arm, hand, targets = (
        rig.received[topic]
        for topic in ('oxygen/arm/joint_trajectory', 'hand_controller/commands', 'oxygen/target')
    )
    rig.listen(JointTrajectory, 'oxygen/arm/joint_trajectory')
    rig.listen(Float64MultiArray, 'hand_controller/commands')
    rig.listen(Target, 'oxygen/target')
    try:
        node.trigger_configure()
        rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True))
        node.trigger_activate()
        rig.wait_for(
            lambda: len(arm) > 5 and len(hand) > 5 and bool(targets) and not targets[-1].held,
            'targets',
        )
        node.trigger_deactivate()
        rig.wait_for(lambda: targets[-1].hold_reason == 'deactivated', 'the last target')
        held = targets[-1]
        rig.wait_for(
            lambda: (
                np.array_equal(arm[-1].points[0].positions, held.positions[::2])
                and list(hand[-1].data) == [held.positions[1]]
            ),
            'its commands',
        )
        rig.spin_for(0.3)  # so that one after them would be seen
        assert targets[-1] is held
        assert arm[-1].joint_names == ['shoulder', 'gripper']
        assert np.array_equal(arm[-1].points[0].positions, held.positions[::2])
        assert list(hand[-1].data) == [held.positions[1]]
    finally:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
        rig.close()
