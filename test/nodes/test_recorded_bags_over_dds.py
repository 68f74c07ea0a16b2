# SPDX-License-Identifier: Apache-2.0
"""Recordings played to the real node over DDS: the outcomes are those of the table."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from bag_outcomes import check_targets, OUTCOMES, PARAMETERS, Plays, Refused
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from rig import JOINTS, overrides, Rig

from oxygen_ros.errors import OxygenError
from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.nodes.sources.bag_player import BagPlayer
from oxygen_ros.replay.bag import open_bag
from oxygen_ros.replay.layout import discover

BY_DEFAULT = (
    'real/bridge_3cam_mcap',
    'real/donkey_raw_bgr8_db3',
    'real/joint_states_1khz_mcap',
    'odd/cam1_stops_at_6s',
    'odd/joint_states_nan',
    'odd/jpeg_truncated',
)
NUM_TARGETS = 50


@pytest.fixture
def robot():
    """Return a rig that ends with its nodes."""
    rig = Rig(cameras=())
    rig.nodes = []
    rig.targets = rig.received['oxygen/target']
    rig.listen(Target, 'oxygen/target')
    rig.listen(DiagnosticArray, '/diagnostics', 10)
    yield rig
    for node in rig.nodes:
        if isinstance(node, OxygenNode):
            node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
    rig.close()


def start_node(rig, layout, row):
    """Start the node for a recording's cameras and joints."""
    cameras = row.cameras or layout.cameras or ('front',)
    node = OxygenNode(
        context=rig.context,
        parameter_overrides=overrides(
            cameras=list(cameras),
            joints=list(layout.joint_names or JOINTS),
            **{name.replace('.', '__'): value for name, value in PARAMETERS.items()},
        ),
    )
    rig.nodes.append(node)
    rig.executor.add_node(node)
    node.trigger_configure()
    node.trigger_activate()
    return node


def start_player(rig, path, row):
    """Play a recording in a loop from where the row begins."""
    values = {'bag': str(path), 'loop': True, 'start_offset': row.start_s}
    player = BagPlayer(
        context=rig.context,
        parameter_overrides=[Parameter(name, value=value) for name, value in values.items()],
    )
    rig.nodes.append(player)
    rig.executor.add_node(player)


def findings(rig):
    """Return what diagnostics have said so far, of the sensors."""
    return {
        f'{status.name.removeprefix("oxygen: ")}: {cause}'
        for array in rig.received['/diagnostics']
        for status in array.status
        for cause in status.message.split('; ')
    }


def plays_as_documented(rig, path, row):
    """Play a recording until what the row says has come to pass."""
    with open_bag(path) as bag:
        layout = discover(bag)
    if layout.joint_topic:
        rig.robot.paused.add('joint_states')
    node = start_node(rig, layout, row)
    if layout.topics:
        start_player(rig, path, row)
    else:  # nothing for the node, which waits for images all the same
        with pytest.raises(OxygenError, match='expected cameras or joint states'):
            start_player(rig, path, row)
    if row.moves:
        rig.wait_for(lambda: any(not target.held for target in rig.targets), 'a fresh target')
    for text in row.says:
        rig.wait_for(lambda text=text: any(text in cause for cause in findings(rig)), text)
    if row.ends_in:
        before = len(rig.targets)
        rig.wait_for(
            lambda: any(target.hold_reason == row.ends_in for target in rig.targets[before:]),
            row.ends_in,
        )
    rig.wait_for(lambda: len(rig.targets) >= NUM_TARGETS, 'targets')
    check_targets(rig.targets, row)
    assert not node.faults.counts and not node.robot.health.num_faults


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=() if name in BY_DEFAULT else pytest.mark.slow)
        for name in OUTCOMES
    ],
)
def test_a_recording_over_dds_ends_as_documented(shared, robot, name):
    row, path = OUTCOMES[name], shared / 'data' / 'bags' / name
    if isinstance(row, Refused):
        with pytest.raises(OxygenError) as caught:
            start_player(robot, path, Plays())
        assert row.because in str(caught.value)
    else:
        plays_as_documented(robot, path, row)
