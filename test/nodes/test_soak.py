# SPDX-License-Identifier: Apache-2.0
"""Ten minutes of all that the node does at once, each part in a process of its own.

`OXYGEN_SOAK_S` sets another duration in seconds; under two minutes the slope means little.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rig import NodeProcess, Rig
from std_srvs.srv import SetBool

from oxygen_ros.msg import LatencyReport, SceneGraph, Target

DURATION_S = float(os.environ.get('OXYGEN_SOAK_S', '600'))
CAMERAS = '[front, left, right]'
JOINTS = '[joint_0, joint_1, joint_2, joint_3, joint_4, joint_5, joint_6]'
MAX_SLOPE = 0.5  # MiB a minute
MIB = 1 << 20


class Soak:
    """The node with its robot in two processes; their client is the test."""

    def __init__(self, folder):
        self.rig = Rig(cameras=())
        self.rig.robot.paused.add('joint_states')  # the other process has them
        self.source = NodeProcess(
            '-m',
            'oxygen_ros.nodes.sources.camera_source',
            cameras=CAMERAS,
            joints=JOINTS,
            autostart=None,
        )
        # Results of dialogues are kept for their clients; within the first half as many of them
        # come to their end as begin, and memory is in its steady state.
        self.node = NodeProcess(
            cameras=CAMERAS,
            joints=JOINTS,
            memory__period_s='1.0',
            dialogue__result_timeout_s='60',
            memory__store_file=str(folder / 'memory.sqlite'),
            audit__file=str(folder / 'audit'),
        )
        self.ticks = []  # (number, held)
        self.memory = []  # (s, MiB)
        self.num_talks = 0
        self._talk = None
        for kind, topic in (
            (DiagnosticArray, '/diagnostics'),
            (SceneGraph, 'oxygen/scene_graph'),
            (LatencyReport, 'oxygen/latency'),
        ):
            self.rig.listen(kind, topic)
        self.rig.client.create_subscription(
            Target,
            'oxygen/target',
            lambda target: self.ticks.append((target.tick, target.held)),
            100,
        )

    def begin(self):
        """Wait for the node and arm it."""
        self.rig.wait_for(lambda: bool(self.ticks) and not self.ticks[-1][1], 'targets', 60.0)
        assert self.rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
        self.rig.spin_for(2.0)
        self.ticks.clear()
        self.rig.received['/diagnostics'].clear()

    def run(self, duration_s):
        """Keep one dialogue going, and read the node's resident memory once a second."""
        process = self.node.process()
        start_s = time.monotonic()
        while (now_s := time.monotonic() - start_s) < duration_s:
            if self._talk is None or self._talk.result is not None:
                self.num_talks += self._talk is not None
                self._talk = self.rig.ask(max_tokens=48)
            if not self.memory or now_s - self.memory[-1][0] >= 1.0:
                self.memory.append((now_s, process.memory_info().rss / MIB))
            self.rig.spin_for(0.2)

    def close(self):
        self.rig.close()
        print(self.node.close(), self.source.close())


@pytest.mark.slow
@pytest.mark.timeout(DURATION_S + 180.0)
def test_memory_stands_still_and_nothing_is_missed(tmp_path):
    soak = Soak(tmp_path)
    try:
        soak.begin()
        soak.run(DURATION_S)
        times_s, rss_mib = np.array(soak.memory).T
        late = times_s >= DURATION_S / 2
        slope = np.polyfit(times_s[late] / 60.0, rss_mib[late], 1)[0]
        ticks = np.array([tick for tick, _ in soak.ticks])
        arrays = soak.rig.received['/diagnostics']
        stamps_s = np.array(
            [array.header.stamp.sec + array.header.stamp.nanosec * 1e-9 for array in arrays]
        )
        scenes = soak.rig.received['oxygen/scene_graph']
        print(
            f'{rss_mib[0]:.1f} MiB at the start, {rss_mib[late][0]:.1f} half way, '
            f'{rss_mib[-1]:.1f} at the end: {slope:+.3f} MiB/min over the last half; '
            f'{soak.num_talks} dialogues, {len(scenes)} scene graphs, {len(ticks)} of '
            f'{ticks[-1] - ticks[0] + 1} ticks, {len(arrays)} diagnostics, last report: '
            f'{soak.rig.received["oxygen/latency"][-1].on_time_ratio:.4f} on time'
        )
        assert slope < MAX_SLOPE, rss_mib[::15].round(1).tolist()
        # A gap of two periods is one that was missed.
        assert np.diff(stamps_s).max() < 1.9 and len(arrays) > DURATION_S * 0.95
        assert np.diff(ticks).min() == 1
        assert len(ticks) > 0.95 * (ticks[-1] - ticks[0])
        assert np.mean([held for _, held in soak.ticks]) < 0.05
        assert soak.num_talks > DURATION_S / 10 and len(scenes) > DURATION_S / 5
        parts = {status.name: status for status in arrays[-1].status}
        assert all(
            parts[f'oxygen: {part}'].level < DiagnosticStatus.ERROR
            for part in ('engine', 'memory', 'dialogue', 'camera front')
        ), parts
    finally:
        soak.close()
