# SPDX-License-Identifier: Apache-2.0
"""What stands at the other ends of the node's topics is named when it cannot work."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import qos_profile_sensor_data, QoSProfile
from rig import CAMERAS, JOINTS, overrides, Rig
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.nodes.oxygen_node import OxygenNode


@pytest.fixture
def rig():
    """Return a rig with an active node."""
    rig = Rig()
    rig.listen(DiagnosticArray, '/diagnostics', 10)
    rig.node = OxygenNode(context=rig.context, parameter_overrides=overrides())
    rig.executor.add_node(rig.node)
    rig.node.trigger_configure()
    yield rig
    rig.node.trigger_shutdown()
    rig.executor.remove_node(rig.node)
    rig.node.destroy_node()
    rig.close()


def status(rig, name, *expected):
    """Return the newest status of a name, once it says what is expected: discovery takes time."""
    arrays = rig.received['/diagnostics']
    before = len(arrays)

    def newest():
        return next(status for status in arrays[-1].status if status.name == f'oxygen: {name}')

    rig.wait_for(
        lambda: len(arrays) >= before + 2 and all(words in newest().message for words in expected),
        f'{name}: {expected}',
    )
    return newest()


def test_a_publisher_of_another_type_is_named(rig):
    rig.foreign(String, f'{CAMERAS[0]}/image_raw', 1)
    found = status(
        rig,
        f'camera {CAMERAS[0]}',
        'expected sensor_msgs/msg/Image, got std_msgs/msg/String from /foreigner',
    )
    assert found.level == DiagnosticStatus.ERROR


def test_an_instruction_that_is_not_latched_is_named(rig):
    rig.foreign(String, 'instruction', QoSProfile(depth=1))
    found = status(rig, 'engine', '/instruction: QoS of /foreigner does not match')
    assert found.level == DiagnosticStatus.WARN


def test_a_camera_that_nobody_publishes_is_named():
    rig = Rig(cameras=CAMERAS[:1])
    rig.listen(DiagnosticArray, '/diagnostics', 10)
    node = OxygenNode(context=rig.context, parameter_overrides=overrides())
    rig.executor.add_node(node)
    try:
        node.trigger_configure()
        found = status(rig, f'camera {CAMERAS[1]}', f'nobody publishes /{CAMERAS[1]}/image_raw or')
        assert found.level == DiagnosticStatus.ERROR
    finally:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
        rig.close()


def test_a_best_effort_publisher_of_joint_states_is_heard(rig):
    rig.robot.paused.add('joint_states')
    counts = {value.key: value.value for value in status(rig, 'joint states').values}
    publisher = rig.client.create_publisher(JointState, 'joint_states', qos_profile_sensor_data)
    rig.wait_for(lambda: publisher.get_subscription_count() == 1, 'the subscription')
    message = JointState(name=list(JOINTS), position=[0.0] * len(JOINTS))
    received = rig.node.robot.joints.counts
    rig.wait_for(
        lambda: publisher.publish(message) or received.received > int(counts['received']),
        'a joint state',
    )
    after = {value.key: value.value for value in status(rig, 'joint states').values}
    assert int(after['received']) > int(counts['received'])


def test_a_rival_on_a_command_topic_and_a_topic_without_listener_are_named(rig):
    rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True))
    status(rig, 'actuation', '/oxygen/joint_trajectory: nobody listens')
    rig.listen(JointTrajectory, 'oxygen/joint_trajectory')
    rig.client.create_publisher(JointTrajectory, 'oxygen/joint_trajectory', 1)
    found = status(rig, 'actuation', '/oxygen/joint_trajectory: /client publishes too')
    assert found.level == DiagnosticStatus.ERROR
    assert 'nobody listens' not in found.message
