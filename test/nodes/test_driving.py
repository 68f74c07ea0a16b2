# SPDX-License-Identifier: Apache-2.0
"""A robot that follows its commands: where each way of driving begins, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from rig import JOINTS, overrides, Rig
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode

STEP_LIMIT = 0.5 * 0.02  # limits.max_velocity
START = (0.25, -0.5, 0.125)


class Robot:
    """A rig whose joints go where the commands say; an active node drives it."""

    def __init__(self, **parameters):
        self.rig = Rig()
        self.rig.robot.paused.add('joint_states')
        self.pose = np.array(START)
        self.sent = []
        self.targets = self.rig.received['oxygen/target']
        self.rig.listen(Target, 'oxygen/target')
        self.rig.client.create_subscription(
            JointTrajectory, 'oxygen/joint_trajectory', self._on_command, 100
        )
        self._states = self.rig.client.create_publisher(JointState, 'joint_states', 1)
        self.rig.client.create_timer(0.01, self._publish)
        self.node = OxygenNode(
            context=self.rig.context,
            parameter_overrides=overrides(
                limits__max_velocity=[0.5],
                actuation__activation_ramp_s=0.3,
                # A busy machine is not what these tests are about.
                max_observation_age_ms=5000.0,
                sensors__state_max_age_s=5.0,
                **parameters,
            ),
        )
        self.rig.executor.add_node(self.node)
        assert self.node.trigger_configure().name == 'SUCCESS'
        self.node.trigger_activate()
        self.wait_for_fresh()

    def _on_command(self, message):
        (point,) = message.points
        self.sent.append(np.array(point.positions or point.velocities))
        if point.positions:
            self.pose = self.sent[-1]

    def _publish(self):
        self._states.publish(JointState(name=list(JOINTS), position=self.pose.tolist()))

    def wait_for_fresh(self):
        start = len(self.targets)
        self.rig.wait_for(
            lambda: sum(not target.held for target in self.targets[start:]) > 5, 'fresh targets'
        )

    def call(self, name):
        return self.rig.call(Trigger, f'oxygen/{name}')

    def enable(self, value=True):
        return self.rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=value))

    def move_by_hand(self, pose):
        """Put the joints somewhere, and wait until the node knows."""

        def known():
            self.pose = np.array(pose)
            return np.allclose(self.node.robot.sensors.newest_state().positions, pose)

        self.rig.wait_for(known, 'the new pose')

    def settle(self):
        """Wait until what was sent before has come, however busy the machine is."""
        start = len(self.targets)
        self.rig.wait_for(
            lambda: sum(not target.armed for target in self.targets[start:]) > 10,
            'targets that are not sent',
        )

    def commands_after(self, action, num_commands=20):
        """Return what is sent after an action, until there is enough of it."""
        start = len(self.sent)
        action()
        self.rig.wait_for(lambda: len(self.sent) >= start + num_commands, 'commands')
        return np.array(self.sent[start:])

    def commands_of_a_movement(self, change):
        """Enable, and return what is sent until it has changed so much: it may hold at first."""
        start = len(self.sent)
        self.commands_after(self.enable)
        self.rig.wait_for(lambda: np.ptp(self.sent[start:], axis=0).max() > change, 'a movement')
        return np.array(self.sent[start:])

    def wait_for_hold(self, reason):
        """Wait for a hold and what was sent before it."""
        self.rig.wait_for(lambda: self.targets[-1].hold_reason == reason, reason)
        self.rig.spin_for(0.2)

    def rest(self):
        """Disarm, with the joints where they were at the start, and forget what was sent."""
        assert self.enable(False).success
        self.settle()
        self.move_by_hand(START)
        self.sent.clear()
        self.wait_for_fresh()
        self.targets.clear()
        self.wait_for_fresh()

    def close(self):
        self.node.trigger_shutdown()
        self.rig.executor.remove_node(self.node)
        self.node.destroy_node()
        self.rig.close()


@pytest.fixture(scope='module')
def shared_robot():
    robot = Robot()
    yield robot
    robot.close()


@pytest.fixture
def robot(shared_robot):
    """Return a robot that is disarmed and at rest."""
    shared_robot.rest()
    return shared_robot


@pytest.fixture
def drive():
    made = []

    def make(**parameters):
        made.append(Robot(**parameters))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def assert_begins_at(commands, pose):
    """Fail unless commands start at a pose and go on in small steps."""
    assert commands[0] == pytest.approx(pose, abs=1e-6)
    assert np.abs(np.diff(commands, axis=0)).max() <= STEP_LIMIT + 1e-9


# These two make nodes of their own, before the shared one comes, which has the same name.


def test_velocities_begin_at_rest_and_end_in_zero(drive):
    robot = drive(actuation__space=['joint_velocity'], limits__max_step=[0.05])
    commands = robot.commands_of_a_movement(0.001)
    assert commands[0] == pytest.approx([0.0] * 3)
    assert np.diff(np.abs(commands), axis=0).max() <= 0.05 + 1e-9  # to rest it may go at once
    robot.node.trigger_deactivate()
    robot.wait_for_hold('deactivated')
    assert robot.sent[-1].tolist() == [0.0] * 3


def test_changes_go_on_from_the_measured_joints(drive):
    robot = drive(actuation__space=['joint_delta', 'joint_delta', 'joint_position'])
    assert_begins_at(robot.commands_after(robot.enable), START)


def test_it_starts_disarmed_and_enabling_begins_at_the_measured_joints(robot):
    assert robot.sent == [] and not any(target.armed for target in robot.targets)
    assert_begins_at(robot.commands_of_a_movement(STEP_LIMIT / 100), START)


@pytest.mark.parametrize('interruption', ['takeover', 'disarm'])
def test_driving_again_begins_where_an_operator_left_the_robot(robot, interruption):
    robot.commands_after(robot.enable)
    if interruption == 'takeover':
        assert robot.call('takeover').success
    else:
        assert robot.enable(False).success
    robot.settle()
    num_sent = len(robot.sent)
    robot.move_by_hand((-1.0, 0.75, 0.5))
    assert len(robot.sent) == num_sent  # nothing works against the operator
    assert_begins_at(robot.commands_after(robot.enable), (-1.0, 0.75, 0.5))


@pytest.mark.parametrize('request_name', ['hold', 'stop'])
def test_hold_and_stop_repeat_one_target_until_enabled_and_then_begin_at_the_joints(
    robot, request_name
):
    robot.commands_after(robot.enable)
    assert robot.call(request_name).success
    robot.wait_for_hold({'hold': 'hold_requested', 'stop': 'stopped'}[request_name])
    held = robot.commands_after(lambda: None, 10)
    assert np.ptp(held, axis=0).max() == 0.0
    if request_name == 'stop':
        assert not robot.enable().success
        assert robot.enable(False).success
        robot.settle()
    commands = robot.commands_after(robot.enable)
    begin = int(np.argmax(np.abs(commands - held[-1]).max(axis=1) > 0.0)) - 1
    assert_begins_at(commands[max(begin, 0) :], held[-1])


def test_deactivation_ends_in_a_hold_and_activation_begins_disarmed(robot):
    robot.commands_after(robot.enable)
    robot.node.trigger_deactivate()
    robot.wait_for_hold('deactivated')
    num_sent = len(robot.sent)
    assert robot.sent[-1] == pytest.approx(robot.targets[-1].positions)
    robot.node.trigger_activate()
    robot.wait_for_fresh()
    assert len(robot.sent) == num_sent
    robot.move_by_hand((1.0, 0.0, 0.25))
    assert_begins_at(robot.commands_after(robot.enable), (1.0, 0.0, 0.25))
