# SPDX-License-Identifier: Apache-2.0
"""What the robot says of itself: its limits, its controllers; and a dry run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from rig import JOINTS, overrides, Rig
from std_msgs.msg import String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import Target
from oxygen_ros.nodes.actuation import controller_watch
from oxygen_ros.nodes.actuation.controller_watch import ControllerWatch
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.nodes.tick_node import TickNode
from oxygen_ros.robot.settings import make_settings
from oxygen_ros.setting import SettingError

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def urdf(upper=0.25, joints=JOINTS):
    return (
        '<robot>'
        + ''.join(
            f'<joint name="{name}" type="revolute"><limit lower="-0.25" upper="{upper}" '
            'velocity="1"/></joint>'
            for name in joints
        )
        + '</robot>'
    )


@pytest.fixture
def start():
    """Start an active node in a rig."""
    rig = Rig()
    rig.listen(DiagnosticArray, '/diagnostics', 10)
    rig.listen(Target, 'oxygen/target')
    nodes = []

    def start_node(kind=OxygenNode, **parameters):
        node = kind(
            context=rig.context,
            parameter_overrides=overrides(diagnostics__rate_hz=10.0, **parameters),
        )
        nodes.append(node)
        rig.executor.add_node(node)
        assert node.trigger_configure().name == 'SUCCESS'
        node.trigger_activate()
        return rig, node

    yield start_node
    for node in nodes:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
    rig.close()


def actuation(rig, node='oxygen'):
    """Return the newest status of actuation and its figures."""
    arrays = rig.received['/diagnostics']

    def newest():
        return next(
            (
                status
                for array in reversed(arrays)
                for status in array.status
                if status.name == f'{node}: actuation'
            ),
            None,
        )

    before = len(arrays)
    rig.wait_for(lambda: len(arrays) >= before + 2 and newest() is not None, 'diagnostics')
    return newest(), {value.key: value.value for value in newest().values}


def test_limits_come_with_the_parameter_and_the_tighter_ones_count(start):
    _, node = start(
        limits__source='robot_description',
        robot_description=urdf(),
        limits__max_position=[0.5, 0.125, 0.5],
    )
    limits = node.robot.actuation.tick._plan[1].limits
    assert limits.max_position.tolist() == [0.25, 0.125, 0.25]
    assert limits.max_velocity.tolist() == [1.0] * 3


@pytest.mark.parametrize(('kind', 'name'), [(OxygenNode, 'oxygen'), (TickNode, 'oxygen_tick')])
def test_the_tick_holds_until_the_robot_has_described_itself(start, kind, name):
    rig, node = start(kind, limits__source='robot_description', limits__min_position=[-0.125])
    tick = (node.robot if kind is OxygenNode else node.plane).actuation.tick
    rig.wait_for(lambda: bool(rig.received['oxygen/target']), 'the tick')
    assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
    targets = rig.received['oxygen/target']
    rig.wait_for(lambda: targets[-1].armed and targets[-1].hold_reason == 'no_limits', 'a hold')
    description = rig.client.create_publisher(String, 'robot_description', LATCHED)
    description.publish(String(data=urdf(joints=JOINTS[:2])))
    rig.wait_for(
        lambda: 'expected a joint gripper' in actuation(rig, name)[0].message,
        'the fault of the first description',
    )
    assert targets[-1].hold_reason == 'no_limits'
    description.publish(String(data=urdf()))
    rig.wait_for(lambda: targets[-1].hold_reason != 'no_limits', 'the end of the hold')
    limits = tick._plan[1].limits
    assert limits.min_position.tolist() == [-0.125] * 3
    assert limits.max_position.tolist() == [0.25] * 3

    # A live change of parameters keeps what the robot has said, and cannot contradict it.
    node.set_parameters([Parameter('limits.max_position', value=[0.5])])
    assert tick._plan[1].limits.max_position.tolist() == [0.25] * 3
    assert not tick.config.awaits_limits
    node.set_parameters([Parameter('limits.min_position', value=[0.375])])
    assert tick._plan[1].limits.min_position.tolist() == [-0.125] * 3
    assert 'expected at most 0.25 for joint 0' in actuation(rig, name)[0].message


def test_a_description_that_lacks_a_joint_is_refused_at_once_where_it_is_a_parameter():
    values = {
        'limits.source': 'robot_description',
        'joints': list(JOINTS),
        'robot_description': urdf(joints=JOINTS[:2]),
    }
    with pytest.raises(SettingError, match='robot_description: expected a joint gripper'):
        make_settings(values)


def test_a_dry_run_shows_targets_and_has_no_command_topic(start):
    rig, _ = start(actuation__dry_run=True, limits__max_tracking_error=[0.001])
    rig.listen(JointTrajectory, 'oxygen/joint_trajectory')
    assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
    targets = rig.received['oxygen/target']
    start_target = len(targets)
    rig.wait_for(
        lambda: sum(not target.held for target in targets[start_target:]) > 30, 'fresh targets'
    )
    assert not any(target.armed for target in targets)
    status, figures = actuation(rig)
    assert status.level != DiagnosticStatus.OK and 'dry run: nothing is sent' in status.message
    assert (figures['state'], figures['dry run']) == ('armed', 'True')
    assert rig.client.count_publishers('oxygen/joint_trajectory') == 0
    assert not rig.received['oxygen/joint_trajectory']


def test_a_controller_manager_that_cannot_be_asked_is_named_only_where_it_is_wanted(
    start, monkeypatch
):
    monkeypatch.setattr(controller_watch, '_list_controllers', lambda: None)
    rig, _ = start(actuation__controller_manager='/controller_manager')
    assert 'expected the package controller_manager_msgs' in actuation(rig)[0].message


class Manager:
    """Stands for the client of list_controllers, whose message type ROS's wheels lack."""

    srv_type = SimpleNamespace(Request=SimpleNamespace)

    def __init__(self):
        self.is_ready = True
        self.requests = []
        self.given_up = []

    def service_is_ready(self):
        return self.is_ready

    def call_async(self, request):
        self.requests.append(Future())
        return self.requests[-1]

    def remove_pending_request(self, future):
        self.given_up.append(future)

    def answer(self, **states):
        self.requests[-1].set_result(
            SimpleNamespace(
                controller=[
                    SimpleNamespace(name=name, state=state) for name, state in states.items()
                ]
            )
        )


def test_inactive_and_absent_controllers_are_named_without_waiting(monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(controller_watch.time, 'monotonic', lambda: now_s[0])
    manager = Manager()
    node = SimpleNamespace(
        create_client=lambda *args, **kwargs: manager, destroy_client=lambda client: None
    )
    watch = ControllerWatch(
        node, '/cm', ['/a/arm_controller/joint_trajectory', '/a/hand_controller/commands'], object
    )
    assert watch.problems() == ['/cm/list_controllers: no answer']
    manager.answer(arm_controller='inactive')
    assert watch.problems() == [
        'controller arm_controller: expected active, got inactive',
        'controller hand_controller: expected active, got none of that name',
    ]
    assert len(manager.requests) == 1  # not at each look
    now_s[0] += 2.0
    watch.problems()
    assert len(manager.requests) == 2
    manager.answer(arm_controller='active', hand_controller='active')
    assert watch.problems() == []

    now_s[0] += 2.0
    assert watch.problems() == []  # the answer before still counts
    lost = manager.requests[-1]
    now_s[0] += 6.0
    assert watch.problems() == ['/cm/list_controllers: no answer']
    assert manager.given_up == [lost] and len(manager.requests) == 4
    manager.answer(arm_controller='active', hand_controller='active')
    assert watch.problems() == []

    manager.is_ready = False
    now_s[0] += 2.0
    assert watch.problems() == ['/cm/list_controllers: no answer']
    watch.destroy()
