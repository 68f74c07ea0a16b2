# SPDX-License-Identifier: Apache-2.0
"""The tick in a process of its own: it ticks, holds and goes on whatever the engine's does."""

from __future__ import annotations

import math
from pathlib import Path
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the nodes are ROS nodes')
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rig import JOINTS, NodeProcess, Rig
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.memory.audit.audit_chain import segment_paths
from oxygen_ros.memory.audit.audit_records import find_records
from oxygen_ros.msg import ActionChunk, LatencyReport, Target
from oxygen_ros.nodes.actuation.mode_publisher import parse_parameters
from oxygen_ros.nodes.tick_node import TickNode

HOGGED_NODE = str(Path(__file__).with_name('hogged_node.py'))
TICK = ('-m', 'oxygen_ros.nodes.tick_node')
PERIOD_S = 0.02
STEP_LIMIT = 2.0 * PERIOD_S  # limits.max_velocity
MAX_STEP_ERROR = 1e-5


class Chain:
    """A robot in this process, engine and tick in two others."""

    def __init__(self, audit):
        self.audit = audit
        self.rig = Rig()
        for kind, topic in (
            (Target, 'oxygen/target'),
            (ActionChunk, 'oxygen/action_chunk'),
            (JointTrajectory, 'oxygen/joint_trajectory'),
            (LatencyReport, 'oxygen/latency'),
            (DiagnosticArray, '/diagnostics'),
        ):
            self.rig.listen(kind, topic)
        self.tick = NodeProcess(*TICK, realtime__fifo_priority='20')
        self.engine = self.make_engine()

    def make_engine(self):
        return NodeProcess(HOGGED_NODE, tick__process='separate', audit__file=str(self.audit))

    @property
    def targets(self):
        return self.rig.received['oxygen/target']

    def move(self):
        """Arm it, if it is not, and wait until fresh targets are sent."""

        def enabled():
            return self.rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success

        self.rig.wait_for(enabled, 'being armed')
        start = len(self.targets)
        self.rig.wait_for(
            lambda: sum(is_fresh(target) for target in self.targets[start:]) > 10,
            'fresh targets',
            40.0,
        )

    def close(self):
        self.engine.close()
        self.tick.close()
        self.rig.close()


@pytest.fixture(scope='module')
def chain(tmp_path_factory):
    made = Chain(tmp_path_factory.mktemp('tick') / 'audit')
    yield made
    made.close()


def is_fresh(target):
    return target.armed and not target.held


def stamp_s(target):
    return target.header.stamp.sec + target.header.stamp.nanosec * 1e-9


def assert_every_tick(targets, allowed_share=0.0):
    """Fail unless the targets are those of all deadlines between the first and the last.

    :param allowed_share: of deadlines that may be missing, singly: a shared machine may do that.
    """
    advances = np.diff([target.tick for target in targets])
    assert advances.min() == 1 and advances.max() <= (2 if allowed_share else 1), advances
    assert (advances - 1).sum() <= allowed_share * len(targets), advances
    gaps_s = np.diff([stamp_s(target) for target in targets])
    assert np.abs(gaps_s - advances * PERIOD_S).max() < 0.001


def test_targets_flow_at_50_hz_from_the_tick_alone(chain):
    chain.move()
    chain.rig.wait_for(lambda: is_fresh(chain.targets[-1]), 'fresh targets', 20.0)
    start = len(chain.targets)
    chain.rig.wait_for(lambda: len(chain.targets) >= start + 75, '75 targets', 20.0)
    targets = chain.targets[start:]
    assert_every_tick(targets, 0.02)
    assert any(target.chunk_ids and target.observation_ids for target in targets)
    sent = chain.rig.received['oxygen/joint_trajectory'][-1]
    assert len(sent.points[0].positions) == len(targets[-1].positions)
    client = chain.rig.client
    for topic in ('oxygen/target', 'oxygen/joint_trajectory'):
        assert [info.node_name for info in client.get_publishers_info_by_topic(topic)] == [
            'oxygen_tick'
        ]
    # The graph need not know all services yet; those of arming were called above.
    assert '/oxygen/enable' not in dict(client.get_service_names_and_types_by_node('oxygen', '/'))
    assert '/oxygen/enable' in dict(client.get_service_names_and_types_by_node('oxygen_tick', '/'))


def test_the_engines_figures_say_that_the_tick_is_elsewhere(chain):
    chain.move()
    statuses = {}

    def seen():
        statuses.update(
            (status.name, status)
            for message in chain.rig.received['/diagnostics']
            for status in message.status
        )
        return {'oxygen: actuation', 'oxygen_tick: actuation', 'oxygen_tick: chunks'} <= set(
            statuses
        )

    chain.rig.wait_for(seen, 'diagnostics of both')
    assert {value.key: value.value for value in statuses['oxygen: actuation'].values} == {
        'state': 'separate'
    }
    chain.rig.wait_for(lambda: bool(chain.rig.received['oxygen/latency']), 'a report')
    report = chain.rig.received['oxygen/latency'][-1]
    assert all(
        math.isnan(value)
        for value in (
            report.ticks,
            report.held,
            report.overruns,
            report.on_time_ratio,
            report.jitter_sd_ms,
        )
    )
    assert not math.isnan(report.kv_blocks_free)


def test_each_change_of_who_drives_is_in_the_engines_audit_log(chain):
    chain.move()
    for service in ('hold', 'takeover', 'stop'):
        assert chain.rig.call(Trigger, f'oxygen/{service}').success
    assert chain.rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=False)).success

    def changes():
        records = find_records(segment_paths(chain.audit), kind='mode')
        return [(record['body']['mode'], record['body']['reason']) for _, record in records]

    burst = [
        ('armed', 'enable'),
        ('holding', 'hold'),
        ('takeover', 'takeover'),
        ('stopped', 'stop'),
        ('disarmed', 'disarm'),
    ]
    chain.rig.wait_for(lambda: changes()[-5:] == burst, 'the changes')
    assert changes()[:2] == [('active', ''), ('disarmed', 'configure')]


def test_the_parameters_of_the_tick_are_in_the_engines_audit_log(chain):
    chain.move()

    def sets():
        records = find_records(segment_paths(chain.audit), kind='parameters')
        return [record['body']['parameters'] for _, record in records]

    def speeds():
        return [
            found['tick_process']['limits.max_velocity']
            for found in sets()
            if 'tick_process' in found
        ]

    chain.rig.wait_for(lambda: speeds()[-1:] == [[2.0]], 'the first set')
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE_ARRAY, double_array_value=[1.5])
    answer = chain.rig.call(
        SetParameters,
        'oxygen_tick/set_parameters',
        SetParameters.Request(
            parameters=[ParameterMessage(name='limits.max_velocity', value=value)]
        ),
    )
    assert answer.results[0].successful, answer.results[0].reason
    chain.rig.wait_for(lambda: speeds()[-1:] == [[1.5]], 'the changed set')
    assert sets()[-1]['limits.max_velocity'] == [2.0]  # the engine's own
    value.double_array_value = [2.0]
    chain.rig.call(
        SetParameters,
        'oxygen_tick/set_parameters',
        SetParameters.Request(
            parameters=[ParameterMessage(name='limits.max_velocity', value=value)]
        ),
    )


@pytest.mark.parametrize('text', ['', '{', '[1]', '"a"', '{"a": "' + 'a' * 1_000_000 + '"}'])
def test_a_set_of_parameters_that_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match='expected|Expecting'):
        parse_parameters(text)


def test_a_hogged_interpreter_of_the_engine_costs_no_tick(chain):
    chain.move()
    chunks = chain.rig.received['oxygen/action_chunk']
    start, start_chunk = len(chain.targets), len(chunks)
    for _ in range(3):
        chain.engine.signal(signal.SIGUSR1)
        chain.rig.spin_for(0.4)
    ended_s = [
        chunk.start_steady_ns * 1e-9 + chunk.inference_delay_s for chunk in chunks[start_chunk:]
    ]
    assert np.diff(ended_s).max() > 0.1  # the engine did stand still
    targets = chain.targets[start:]
    assert_every_tick(targets)
    assert max(target.lateness_s for target in targets) < PERIOD_S / 2


def test_the_tick_outlives_the_engine_in_hold_and_goes_on_with_the_next(chain):
    chain.move()
    start = len(chain.targets)
    chunk = chain.rig.received['oxygen/action_chunk'][-1]
    chunk_s = chunk.action_horizon * chunk.action_dt_s
    killed_s = time.time()
    chain.engine.close()
    chain.rig.wait_for(
        lambda: chain.targets[-1].held and stamp_s(chain.targets[-1]) > killed_s + chunk_s + 0.1,
        'a hold',
    )
    since = [target for target in chain.targets[start:] if stamp_s(target) > killed_s]
    late = [target for target in since if stamp_s(target) > killed_s + chunk_s + 0.1]
    assert {(target.held, target.armed) for target in late} == {(True, True)}
    # The robot here, whose middleware has lost a peer, may be silent for a moment too.
    assert {target.hold_reason for target in late} <= {
        'chunk_exhausted',
        'stale_observation',
        'stale_state',
    }
    held = list(late[-1].positions)
    assert all(list(target.positions) == held for target in late)

    restart = len(chain.targets)
    chain.engine = chain.make_engine()
    chain.rig.wait_for(
        lambda: sum(map(is_fresh, chain.targets[restart:])) > 25,
        'fresh targets of the next engine',
        40.0,
    )
    targets = chain.targets[start:]
    assert_every_tick(targets, 0.01)
    assert all(target.armed for target in targets)
    steps = np.abs(np.diff([list(target.positions) for target in targets], axis=0))
    assert steps.max() <= STEP_LIMIT + MAX_STEP_ERROR  # after a missing tick too


def test_a_signal_ends_the_process_in_a_hold():
    rig = Rig()
    tick = NodeProcess(*TICK, engine_node='other')
    try:
        rig.listen(Target, 'other/target')
        rig.listen(JointTrajectory, 'other/joint_trajectory')
        targets = rig.received['other/target']
        assert not rig.call(Trigger, 'other/hold').success  # disarmed, or not configured yet
        rig.wait_for(lambda: bool(targets) and targets[-1].hold_reason == 'no_chunk', 'a tick')
        assert not targets[-1].armed
        assert rig.call(SetBool, 'other/enable', SetBool.Request(data=True)).success
        rig.wait_for(lambda: bool(rig.received['other/joint_trajectory']), 'a held trajectory')
        start_s = time.monotonic()
        tick.signal(signal.SIGTERM)
        rig.wait_for(lambda: not tick.is_running, 'the end')
        assert time.monotonic() - start_s < 10.0  # 1 s, on a busy machine several times that
        status, output = tick.wait()
        assert status == 0, output
        assert 'Traceback' not in output and 'ERROR' not in output, output
        rig.wait_for(lambda: targets[-1].hold_reason == 'shutdown', 'the last target')
        assert targets[-1].held and targets[-1].armed
        sent = rig.received['other/joint_trajectory']
        rig.wait_for(
            lambda: sent[-1].points[0].positions == targets[-1].positions, 'the last command'
        )
    finally:
        tick.close()
        rig.close()


def test_an_argument_that_is_none_of_ros_ends_the_process_in_one_line():
    ended = subprocess.run(
        [sys.executable, '-m', 'oxygen_ros.nodes.tick_node', '--rate'],
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr == 'tick_node: arguments: expected only --ros-args, got --rate\n'


def test_the_process_loads_neither_torch_nor_the_engine():
    # But their settings, whose names it has to know.
    code = (
        'import sys, oxygen_ros.nodes.tick_node; '
        'print(sorted(name for name in sys.modules if name in ("torch", "llguidance") '
        'or name.startswith(("oxygen_ros.engine.", "oxygen_ros.models."))))'
    )
    output = subprocess.run(
        [sys.executable, '-c', code], check=True, capture_output=True, text=True, timeout=60.0
    ).stdout
    settings = ['oxygen_ros.engine.config', 'oxygen_ros.engine.spec', 'oxygen_ros.models.options']
    assert output.strip() == str(settings)


def test_joints_that_are_measured_before_the_tick_is_activated_are_known_at_once():
    rig = Rig()
    node = TickNode(context=rig.context, parameter_overrides=[Parameter('joints', value=JOINTS)])
    rig.executor.add_node(node)
    rig.listen(Target, 'oxygen/target')
    try:
        node.trigger_configure()
        rig.wait_for(lambda: node._plane._state is not None, 'joint states')
        node.trigger_activate()
        rig.wait_for(lambda: bool(rig.received['oxygen/target']), 'targets')
        assert 'no_state' not in {target.hold_reason for target in rig.received['oxygen/target']}
    finally:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
        rig.close()


def test_after_a_small_jump_back_of_simulated_time_joints_are_taken_again():
    rig = Rig()
    rig.robot.paused.add('joint_states')
    node = TickNode(
        context=rig.context,
        parameter_overrides=[
            Parameter('joints', value=JOINTS),
            Parameter('use_sim_time', value=True),
        ],
    )
    rig.executor.add_node(node)
    clock = rig.client.create_publisher(Clock, '/clock', 10)
    states = rig.client.create_publisher(JointState, 'joint_states', 10)

    def set_time(seconds):
        message = Clock(clock=Time(sec=100, nanosec=round(seconds * 1e9)))
        rig.wait_for(
            lambda: clock.publish(message) or node.get_clock().now().to_msg() == message.clock,
            'a time',
        )

    def is_taken(seconds):
        stamp = Time(sec=100, nanosec=round(seconds * 1e9))
        message = JointState(name=JOINTS, position=[seconds] * len(JOINTS))
        message.header.stamp = stamp
        states.publish(message)
        state = node._plane._state
        return state is not None and np.isclose(state.positions, seconds).all()

    try:
        node.trigger_configure()
        set_time(0.7)
        rig.wait_for(lambda: is_taken(0.7), 'joint states')
        set_time(0.2)
        rig.wait_for(lambda: is_taken(0.2), 'joint states of after the jump')
    finally:
        rig.executor.remove_node(node)
        node.destroy_node()
        rig.close()
