# SPDX-License-Identifier: Apache-2.0
"""A node whose disk cannot be written: it moves, says so, and goes on by itself."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray
from rig import overrides, Rig

from oxygen_ros.cli import main
from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryReader
from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode


@pytest.fixture
def rig():
    rig = Rig()
    rig.listen(Target, 'oxygen/target')
    rig.listen(DiagnosticArray, '/diagnostics', 10)
    yield rig
    rig.close()


def newest_memory(rig):
    """Return the newest status of memory; None: none so far."""
    found = [
        status
        for array in rig.received['/diagnostics']
        for status in array.status
        if status.name == 'oxygen: memory'
    ]
    return found[-1] if found else None


def num_fresh(rig):
    return sum(not target.held for target in rig.received['oxygen/target'])


def test_it_moves_and_says_so_and_writes_as_soon_as_it_can(rig, tmp_path):
    disk = tmp_path / 'disk'
    disk.write_text('no folder: nothing can be made below')
    node = OxygenNode(
        context=rig.context,
        parameter_overrides=overrides(
            memory__store_file=str(disk / 'memory.db'),
            audit__file=str(disk / 'audit'),
            max_observation_age_ms=2000.0,
        ),
    )
    rig.executor.add_node(node)
    try:
        node.trigger_configure()
        node.trigger_activate()
        rig.wait_for(lambda: num_fresh(rig) > 10, 'fresh targets')

        def told():
            status = newest_memory(rig)
            return (
                status is not None
                and status.level != b'\0'
                and all(f'{name}: ' in status.message for name in ('store', 'audit log'))
            )

        rig.wait_for(told, 'a warning of both')
        before = num_fresh(rig)
        disk.unlink()
        disk.mkdir()

        def written():
            values = {
                pair.key: int(pair.value)
                for pair in newest_memory(rig).values
                if pair.key.endswith((' written', ' dropped'))
            }
            return (
                newest_memory(rig).level == b'\0'
                and values['store dropped'] == 0
                and values['store written'] > 10
                and values['audit log written'] > 10
            )

        rig.wait_for(written, 'the end of the warning')
        rig.wait_for(lambda: num_fresh(rig) > before, 'more fresh targets')
    finally:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
    assert main(['audit', 'verify', str(disk / 'audit')]) == 0
    reader = MemoryReader(disk / 'memory.db')
    assert reader.find(MemoryQuery()).entries  # of before the disk could be written, too
    reader.close()
