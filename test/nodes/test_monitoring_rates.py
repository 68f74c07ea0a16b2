# SPDX-License-Identifier: Apache-2.0
"""How often the node reports is changed while it runs; its timeline comes to those who listen."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from rig import overrides, Rig
from std_msgs.msg import Int64MultiArray

from oxygen_ros.engine.scheduling.timeline import EventKind
from oxygen_ros.msg import LatencyReport
from oxygen_ros.nodes.oxygen_node import OxygenNode

REPORTS, STATUSES, TIMELINE = 'oxygen/latency', '/diagnostics', 'oxygen/timeline'


@pytest.fixture(scope='module')
def rig():
    """Return a rig with an active node that has encoded images."""
    rig = Rig()
    rig.listen(LatencyReport, REPORTS)
    rig.listen(DiagnosticArray, STATUSES)
    rig.listen(Int64MultiArray, TIMELINE)
    rig.node = OxygenNode(context=rig.context, parameter_overrides=overrides(autostart=True))
    rig.executor.add_node(rig.node)
    rig.node.trigger_configure()
    rig.node.trigger_activate()
    yield rig
    rig.node.trigger_shutdown()
    rig.executor.remove_node(rig.node)
    rig.node.destroy_node()
    rig.close()


def set_rates(rig, latency_hz, diagnostics_hz):
    results = rig.node.set_parameters(
        [
            Parameter('latency.rate_hz', value=latency_hz),
            Parameter('diagnostics.rate_hz', value=diagnostics_hz),
        ]
    )
    return [result.successful for result in results]


@pytest.mark.slow
def test_reports_and_statuses_are_switched_off_and_on_while_the_node_runs(rig):
    reports, statuses = rig.received[REPORTS], rig.received[STATUSES]
    rig.wait_for(lambda: len(reports) > 2 and len(statuses) > 1, 'reports and statuses')
    assert set_rates(rig, 0.0, 0.0) == [True, True]
    rig.spin_for(0.5)  # those on their way
    before = len(reports), len(statuses)
    rig.spin_for(1.5)
    assert (len(reports), len(statuses)) == before
    assert set_rates(rig, 50.0, 10.0) == [True, True]
    rig.wait_for(
        lambda: len(reports) >= before[0] + 60 and len(statuses) >= before[1] + 12,
        'both again, faster',
    )
    windows_s = [report.window_s for report in reports[-5:]]
    assert all(0.9 < window_s < 2.5 for window_s in windows_s), windows_s


@pytest.mark.parametrize('rates', [(-1.0, 1.0), (1000.0, 1.0), (float('nan'), 1.0)])
def test_a_rate_that_cannot_be_is_refused(rig, rates):
    assert set_rates(rig, *rates)[0] is False


def test_the_timeline_comes_without_gap_or_repetition_in_ros_time(rig):
    set_rates(rig, 20.0, 0.0)
    messages = rig.received[TIMELINE]
    messages.clear()
    rig.wait_for(lambda: len(messages) >= 20, 'the timeline')
    rows = np.concatenate([np.array(message.data) for message in messages]).reshape(-1, 5)
    sent = {tuple(row) for row in rows[:, [0, 3, 4]].tolist()}
    assert {EventKind.ACTION, EventKind.PREFIX} <= {kind for kind, *_ in sent}
    assert np.unique(rows, axis=0).shape == rows.shape
    kept = rig.node.robot.engine.timeline.snapshot()
    place = np.flatnonzero((kept[:, [0, 3, 4]] == rows[0, [0, 3, 4]]).all(axis=1))
    assert any(
        np.array_equal(kept[first : first + len(rows), [0, 3, 4]], rows[:, [0, 3, 4]])
        for first in place
    )
    assert abs(rows[-1, 2] - time.time_ns()) < 30_000_000_000
