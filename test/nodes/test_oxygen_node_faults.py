"""Faults of sensors and engine: each ends in a hold that says why, and in recovery by itself."""
from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rig import CAMERAS, overrides, Rig
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.srv import UpdateSceneGraph


@pytest.fixture
def rig():
    """Return a rig with an active, armed node that has fresh targets."""
    rig = Rig()
    node = rig.node = OxygenNode(context=rig.context, parameter_overrides=overrides(
        sensors__camera_max_age_s=[0.5], sensors__state_max_age_s=0.5))
    rig.executor.add_node(node)
    rig.targets = rig.received['oxygen/target']
    rig.listen(Target, 'oxygen/target')
    rig.listen(JointTrajectory, 'oxygen/joint_trajectory')
    rig.listen(DiagnosticArray, '/diagnostics', 10)
    node.trigger_configure()
    rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True))
    node.trigger_activate()
    wait_for_fresh(rig)
    yield rig
    node.trigger_shutdown()
    rig.executor.remove_node(node)
    node.destroy_node()
    rig.close()


def wait_for_fresh(rig):
    rig.wait_for(lambda: bool(rig.targets) and not rig.targets[-1].held, 'a fresh target')


def wait_for_hold(rig, *reasons):
    rig.wait_for(lambda: rig.targets[-1].held and rig.targets[-1].hold_reason in reasons,
                 f'a hold for {reasons}')


@pytest.mark.parametrize(('lost', 'reasons'), [
    (CAMERAS[1], ('stale_observation', 'chunk_exhausted')),
    ('joint_states', ('stale_state', 'chunk_exhausted'))])
def test_a_lost_sensor_ends_in_a_hold_of_the_last_target_and_recovers(rig, lost, reasons):
    rig.robot.paused.add(lost)
    wait_for_hold(rig, *reasons)
    rig.spin_for(0.1)
    sent = rig.received['oxygen/joint_trajectory']
    assert sent[-1].points[0].positions == sent[-2].points[0].positions
    rig.robot.paused.clear()
    wait_for_fresh(rig)


def test_an_action_that_is_not_finite_is_never_sent(rig, monkeypatch):
    finish = rig.node.runtime.model.finish_action
    with monkeypatch.context() as patch:
        patch.setattr(rig.node.runtime.model, 'finish_action',
                      lambda action: np.full_like(finish(action), np.nan))
        wait_for_hold(rig, 'refused_nonfinite')
    wait_for_fresh(rig)
    assert all(np.isfinite(message.points[0].positions).all()
               for message in rig.received['oxygen/joint_trajectory'])


def test_an_engine_fault_ends_live_requests_with_an_error_and_the_engine_goes_on(
        rig, monkeypatch):
    talk = rig.ask(max_tokens=400)
    rig.wait_for(lambda: bool(talk.feedback), 'feedback')
    with monkeypatch.context() as patch:
        def fail(*args):
            patch.undo()
            raise RuntimeError('broken on purpose')

        patch.setattr(rig.node.runtime.model, 'encode_image', fail)
        result = rig.wait_for_result(talk)
    assert talk.status == GoalStatus.STATUS_ABORTED and result.finish_reason == 'error'
    assert rig.node.runtime.engine_thread.num_faults == 1
    wait_for_fresh(rig)
    assert rig.wait_for_result(rig.ask(max_tokens=4)).finish_reason in ('stop', 'length')


def test_an_engine_that_fails_for_good_holds_answers_and_comes_back_with_activation(
        rig, monkeypatch):
    def fail(*args):
        raise RuntimeError('broken on purpose')

    with monkeypatch.context() as patch:
        patch.setattr(rig.node.runtime.model, 'encode_image', fail)
        rig.wait_for(lambda: rig.node.runtime.engine_thread.failed, 'the end of the engine')
        wait_for_hold(rig, 'chunk_exhausted', 'stale_observation')
        talk = rig.ask()
        result = rig.wait_for_result(talk)
        assert talk.status == GoalStatus.STATUS_ABORTED and 'failed' in result.message
        update = rig.call(UpdateSceneGraph, 'oxygen/update_scene_graph')
        assert not update.success and 'failed' in update.message
        arrays = rig.received['/diagnostics']
        rig.wait_for(lambda: bool(arrays) and any(
            status.name == 'oxygen: engine' and status.level == DiagnosticStatus.ERROR
            for status in arrays[-1].status), 'the diagnosis')
    rig.node.trigger_deactivate()
    rig.node.trigger_activate()
    rig.wait_for(lambda: rig.targets[-1].tick < 1000 and not rig.targets[-1].held,
                 'a fresh target after activation')
