# SPDX-License-Identifier: Apache-2.0
"""How the node's process ends: by signals, by wrong parameters, by a model that cannot be had."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from action_msgs.msg import GoalStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from recorded_program import command, Record
from rig import NodeProcess, Rig
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import Target


@pytest.mark.parametrize(
    'signals',
    [
        (signal.SIGTERM,),
        (signal.SIGINT, signal.SIGINT),
        pytest.param((signal.SIGINT,), marks=pytest.mark.slow),
        pytest.param((signal.SIGINT, signal.SIGTERM), marks=pytest.mark.slow),
    ],
    ids=lambda signals: ' '.join(map(str, signals)),
)
def test_a_signal_while_decoding_ends_the_process_in_a_hold(signals, tmp_path):
    # Room for a dialogue that outlasts any pause of the machine.
    rig, record = Rig(), Record(tmp_path / 'record')
    node = NodeProcess(
        *command('oxygen_ros.nodes.oxygen_node', tmp_path / 'record'),
        engine__max_text_tokens='4000',
        kv__num_text_blocks='600',
        max_observation_age_ms='2000.0',
        sensors__state_max_age_s='2.0',
    )
    try:
        rig.listen(Target, 'oxygen/target')
        rig.listen(JointTrajectory, 'oxygen/joint_trajectory')
        targets = rig.received['oxygen/target']
        rig.wait_for(lambda: bool(targets), 'a target')
        assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
        rig.wait_for(
            lambda: bool(rig.received['oxygen/joint_trajectory']) and not targets[-1].held,
            'a fresh trajectory',
        )
        talk = rig.ask(max_tokens=3500)
        rig.wait_for(lambda: bool(talk.feedback), 'feedback')
        rig.wait_for(record.has_request, 'the request of its result')
        node.signal(*signals)
        rig.wait_for(lambda: not node.is_running, 'the end')
        status, output = node.wait()
        assert status == 0, output
        assert 'Traceback' not in output and 'ERROR' not in output, output
        last = record.of(Target, '/oxygen/target')[-1]
        assert last.held and last.armed and last.hold_reason == 'shutdown'
        sent = record.of(JointTrajectory, '/oxygen/joint_trajectory')[-1]
        assert sent.points[0].positions == last.positions
        ((goal_status, result),) = record.results()
        assert goal_status == GoalStatus.STATUS_ABORTED
        assert result.finish_reason == 'error' and result.text
    finally:
        rig.close()
        node.close()


@pytest.mark.slow
def test_a_signal_after_the_shutdown_transition_ends_the_process_all_the_same(tmp_path):
    rig, record = Rig(), Record(tmp_path / 'record')
    node = NodeProcess(*command('oxygen_ros.nodes.oxygen_node', tmp_path / 'record'))
    try:
        rig.listen(Target, 'oxygen/target')
        rig.wait_for(lambda: bool(rig.received['oxygen/target']), 'a target')
        shutdown = Transition(id=Transition.TRANSITION_ACTIVE_SHUTDOWN)
        request = ChangeState.Request(transition=shutdown)
        assert rig.call(ChangeState, 'oxygen/change_state', request).success
        assert record.of(Target, '/oxygen/target')[-1].hold_reason == 'shutdown'
        assert rig.call(GetState, 'oxygen/get_state').current_state.label == 'finalized'
        node.signal(signal.SIGTERM)
        status, output = node.wait()
    finally:
        rig.close()
        node.close()
    assert status == 0 and 'Traceback' not in output and 'ERROR' not in output, output


@pytest.mark.parametrize(
    ('parameters', 'named'),
    [
        (
            {'modle__name': 'tiny'},
            'modle.name: expected the name of a parameter',
        ),  # when it is made
        ({'memory__max_new_objects': '60'}, 'scene graph'),  # when it is configured
    ],
)
def test_a_wrong_parameter_ends_the_process_with_one_line(parameters, named):
    node = NodeProcess(**parameters)
    try:
        status, output = node.wait()
    finally:
        node.close()
    assert status == 1
    assert named in output
    assert len(output.strip().splitlines()) == 1, output
