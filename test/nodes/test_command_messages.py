# SPDX-License-Identifier: Apache-2.0
"""What the controllers get: points that they do not drop, and between which they do not jitter."""

from __future__ import annotations

from pathlib import Path
import sys

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the commands are ROS messages')
from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

sys.path.append(str(Path(__file__).resolve().parents[1] / 'control'))
import control_rig

from oxygen_ros.control import TickConfig
from oxygen_ros.nodes.actuation.target_publisher import CommandsOutput, TrajectoryOutput
from oxygen_ros.nodes.middleware.command_bytes import CommandBytes
from oxygen_ros.robot.actuator_groups import ActuatorGroup

MESSAGES = {TrajectoryOutput: JointTrajectory, CommandsOutput: Float64MultiArray}
MS = 0.001
PERIOD_S = 0.02


@pytest.fixture
def node():
    context = Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    made = Node('commands', context=context, start_parameter_services=False)
    yield made
    made.destroy_node()
    context.try_shutdown()


def make_output(node, kind=TrajectoryOutput, **config):
    """Return an output for joints 2 and 0 of three, and what it publishes from now on."""
    output = kind(
        node, '~/commands', ActuatorGroup(('c', 'a'), (2, 0), '', ''), TickConfig(3, **config)
    )
    node.destroy_publisher(output.publisher)
    sent = []
    output.publisher = type(
        'Ear',
        (),
        {
            'publish': staticmethod(
                lambda data: sent.append(content(deserialize_message(data, MESSAGES[kind])))
            )
        },
    )
    return output, sent


def content(message):
    """Return what a message says."""
    if not hasattr(message, 'points'):
        return list(message.data)
    (point,) = message.points
    stamp, ahead = message.header.stamp, point.time_from_start
    return {
        'stamp_ns': stamp.sec * 10**9 + stamp.nanosec,
        'ahead_s': ahead.sec + ahead.nanosec * 1e-9,
        'joints': list(message.joint_names),
        'positions': list(point.positions),
        'velocities': list(point.velocities),
        'accelerations': list(point.accelerations),
    }


@pytest.mark.parametrize('rate_hz', [1, 30, 50, 1000])
def test_every_point_lies_one_period_ahead_of_now(node, rate_hz):
    output, sent = make_output(node, rate_hz=rate_hz)
    for value in (0.0, 0.1, 0.2):
        output.send(np.array([value, 9.0, -value]))
    assert [message['positions'] for message in sent] == [[0.0, 0.0], [-0.1, 0.1], [-0.2, 0.2]]
    for message in sent:
        assert message['stamp_ns'] == 0  # begin now; a stamp in the past would be dropped
        assert message['ahead_s'] == pytest.approx(1.0 / rate_hz) and message['ahead_s'] > 0.0
        assert message['joints'] == ['c', 'a']
        # Positions alone make a controller interpolate linearly.
        assert message['velocities'] == message['accelerations'] == []


def test_a_velocity_is_sent_as_one(node):
    output, sent = make_output(node, space=('joint_velocity',))
    output.send(np.array([0.5, 9.0, -0.5]))
    assert (sent[0]['velocities'], sent[0]['positions']) == ([-0.5, 0.5], [])


def test_plain_commands_come_in_the_order_of_the_groups_joints(node):
    output, sent = make_output(node, CommandsOutput)
    output.send(np.array([0.5, 9.0, -0.5]))
    assert sent == [[-0.5, 0.5]]


@pytest.mark.parametrize('num_joints', [1, 2, 7, 40])
def test_in_the_bytes_of_a_command_the_numbers_alone_change(num_joints):
    names = [f'joint_{"x" * index}' for index in range(num_joints)]  # of every length
    point = JointTrajectoryPoint(positions=[0.5] * num_joints)
    message = JointTrajectory(joint_names=names, points=[point])
    command = CommandBytes(message, point.positions)
    assert deserialize_message(command.read(), JointTrajectory) == message
    values = np.linspace(-3.0, 3.0, num_joints)
    command.write(values)
    point.positions = values.tolist()
    assert deserialize_message(command.read(), JointTrajectory) == message


def test_an_array_that_is_not_of_the_message_is_refused():
    message = Float64MultiArray(data=[0.0, 0.0])
    other = Float64MultiArray(data=[0.0, 0.0])
    with pytest.raises(RuntimeError, match='Float64MultiArray: expected its numbers as one piece'):
        CommandBytes(message, other.data)


def followed(messages, arrivals_s, end_s):
    """Return a controller's command each millisecond: linear from where it is to each point."""
    commands, now_s, command, segment = [], arrivals_s[0], messages[0]['positions'][1], None
    pending = list(zip(arrivals_s, messages))
    while now_s < end_s:
        while pending and pending[0][0] <= now_s:
            _, message = pending.pop(0)
            segment = (now_s, command, now_s + message['ahead_s'], message['positions'][1])
        begin_s, start, until_s, goal = segment
        done = min((now_s - begin_s) / (until_s - begin_s), 1.0)
        command = start + (goal - start) * done
        commands.append(command)
        now_s += MS
    return np.array(commands)


def flown(node, seed):
    """Send the targets of a policy that moves up, stays, and moves on; return what was sent."""
    output, sent = make_output(node)
    rig = control_rig.Rig(activation_ramp_s=0.2, limits={'max_step': 0.02})
    plan = np.concatenate([np.linspace(0.0, 1.0, 60), np.ones(60), np.linspace(1.0, 1.5, 40)])
    rng = np.random.default_rng(seed)
    for tick in range(len(plan)):
        if rng.random() < 0.3:  # late, lost or none: the next one says the same of the same time
            rig.add(plan[tick : tick + 30], chunk_id=tick + 1)
        value = rig.step().target.values[0]
        output.send(np.array([value, 0.0, 0.0]))
    return sent


@pytest.mark.parametrize('seed', range(5))
def test_a_controller_never_turns_back_between_targets_that_do_not(node, seed):
    sent = flown(node, seed)
    targets = np.array([message['positions'][1] for message in sent])
    assert (np.diff(targets) >= -1e-6).all()
    jitter_s = np.random.default_rng(seed).uniform(0.0, 0.004, len(sent))
    arrivals_s = np.arange(len(sent)) * PERIOD_S + jitter_s
    commands = followed(sent, arrivals_s, arrivals_s[-1] + 2 * PERIOD_S)
    assert (np.diff(commands) >= -1e-6).all()
    # Nor does it lag: when a point's time has come, the command is there.
    at = np.rint((arrivals_s[1:] - arrivals_s[0]) / MS).astype(int) - 1
    assert np.abs(commands[at] - targets[:-1]).max() <= 0.02 * 0.3
    assert (np.abs(np.diff(targets)) < 1e-9).sum() > 20  # and stands still where they do
