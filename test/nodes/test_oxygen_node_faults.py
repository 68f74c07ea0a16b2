"""Lost sensors: each ends in a hold that says why, and in recovery by itself."""
from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from armed_rig import armed_rig
from rig import CAMERAS


@pytest.fixture
def rig():
    """Return a rig whose node takes sensors for lost after 0.5 s."""
    with armed_rig(sensors__camera_max_age_s=[0.5], sensors__state_max_age_s=0.5) as rig:
        yield rig


@pytest.mark.parametrize(('lost', 'reasons'), [
    (CAMERAS[1], ('stale_observation', 'chunk_exhausted')),
    ('joint_states', ('stale_state', 'chunk_exhausted'))])
def test_a_lost_sensor_ends_in_a_hold_of_the_last_target_and_recovers(rig, lost, reasons):
    rig.robot.paused.add(lost)
    rig.wait_for_hold(*reasons)
    rig.spin_for(0.1)
    assert rig.sent[-1].points[0].positions == rig.sent[-2].points[0].positions
    rig.robot.paused.clear()
    rig.wait_for_fresh()
