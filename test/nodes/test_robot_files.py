# SPDX-License-Identifier: Apache-2.0
"""The robot files: each fits the table of parameters, and a node runs its joints and cameras."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the files are parameter files of a ROS node')
from rig import Rig
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from oxygen_ros.nodes.launch_arguments import parameters_of
from oxygen_ros.nodes.oxygen_node import OxygenNode

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / 'config' / 'robots').glob('*.yaml'))
# cameras, joints and groups of each
SIZES = {'so101': (2, 6, 2), 'aloha': (4, 14, 4), 'franka_fr3': (2, 7, 1)}


def test_each_robot_has_its_file():
    assert {path.stem for path in FILES} == set(SIZES)


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_a_node_drives_the_robot_of_the_file(path):
    num_cameras, num_joints, num_groups = SIZES[path.stem]
    named = parameters_of([str(path)])
    middle = (
        np.array(named['limits']['min_position']) + np.array(named['limits']['max_position'])
    ) / 2.0
    rig = Rig(cameras=named['cameras'], joints=named['joints'])
    rig.robot.paused.add('joint_states')  # whose pose is not within all these limits
    state = JointState(name=named['joints'], position=middle.tolist())
    publisher = rig.client.create_publisher(JointState, 'joint_states', 1)
    rig.client.create_timer(0.02, lambda: publisher.publish(state))
    node = OxygenNode(
        context=rig.context,
        cli_args=[
            '--ros-args',
            '--params-file',
            str(ROOT / 'config' / 'oxygen.yaml'),
            '--params-file',
            str(path),
            '-p',
            'memory.period_s:=0.0',
        ],
    )
    rig.executor.add_node(node)
    try:
        assert node.trigger_configure().name == 'SUCCESS'
        config = node.robot.settings
        limits = config.limits
        assert len(config.sensors.cameras) == num_cameras
        assert limits.num_joints == num_joints
        assert np.isfinite(limits.min_position).all() and np.isfinite(limits.max_position).all()
        assert (limits.min_position < limits.max_position).all()
        assert (limits.step_bound(config.tick.mode, 0.02) <= 0.1).all()
        assert len(config.groups) == num_groups
        rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True))
        node.trigger_activate()
        targets = []
        rig.wait_for(
            lambda: (
                targets.append(node.robot.actuation.newest)
                or (targets[-1] is not None and not targets[-1].target.held)
            ),
            'fresh targets',
        )
        assert (targets[-1].target.values >= limits.min_position - 1e-9).all()
        assert (targets[-1].target.values <= limits.max_position + 1e-9).all()
    finally:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
        rig.close()
