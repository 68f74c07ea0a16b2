# SPDX-License-Identifier: Apache-2.0
"""Groups of joints: each target is split over their topics, each in its own form."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the groups are topics of a ROS node')
from rig import overrides, Rig
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode


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
