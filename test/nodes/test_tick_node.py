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
from recorded_program import command, Record
from rig import deadlines_ns, JOINTS, NodeProcess, PERIOD_NS, Rig, stamp_ns, TIMEOUT_S
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
AGES = {'max_observation_age_ms': '2000.0', 'sensors__state_max_age_s': '2.0'}
STEP_LIMIT = 2.0 * PERIOD_NS * 1e-9  # limits.max_velocity
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
        self.tick = NodeProcess(*TICK, realtime__fifo_priority='20', **AGES)
        self.engine = self.make_engine()

    def make_engine(self):
        return NodeProcess(
            HOGGED_NODE, tick__process='separate', audit__file=str(self.audit), **AGES
        )

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
        )

    def hog(self):
        """Keep the engine's interpreter; return the targets of that time and of a while after."""
        chunks = self.rig.received['oxygen/action_chunk']
        start, last_chunk = len(self.targets), len(chunks) - 1
        self.engine.signal(signal.SIGUSR1)

        def stood_still():
            ended_s = [
                chunk.start_steady_ns * 1e-9 + chunk.inference_delay_s
                for chunk in chunks[last_chunk:]
            ]
            return len(ended_s) > 1 and np.diff(ended_s).max() > 0.1

        self.rig.wait_for(stood_still, 'an engine that stands still')
        end = len(self.targets)
        self.rig.wait_for(lambda: len(self.targets) > end + 5, 'targets after it')
        return self.targets[start - 1 :]

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


def assert_on_the_grid(targets):
    """Fail unless no deadline comes twice and all are of one grid, whatever was missed."""
    assert (np.diff([target.tick for target in targets]) > 0).all()
    stamps_ns = np.array([stamp_ns(target) for target in targets])
    assert np.median(np.abs(stamps_ns - deadlines_ns(targets))) < 1_000_000


def longest_row(targets):
    """Return how many targets at most came deadline after deadline."""
    gaps = np.flatnonzero(np.diff([target.tick for target in targets]) != 1)
    return int(np.diff([-1, *gaps, len(targets) - 1]).max())


def test_targets_flow_at_50_hz_from_the_tick_alone(chain):
    chain.move()
    start = len(chain.targets)
    chain.rig.wait_for(lambda: longest_row(chain.targets[start - 1 :]) >= 25, '25 in a row')
    chain.rig.wait_for(
        lambda: any(target.chunk_ids and is_fresh(target) for target in chain.targets[start:]),
        'a fresh target of a chunk',
    )
    targets = chain.targets[start:]
    assert_on_the_grid(targets)
    sent = chain.rig.received['oxygen/joint_trajectory'][-1]
    assert len(sent.points[0].positions) == len(targets[-1].positions)
    client = chain.rig.client
    # The graph need not know all names yet.
    chain.rig.wait_for(
        lambda: {'oxygen', 'oxygen_tick'} <= set(client.get_node_names()), 'the names of the nodes'
    )
    for topic in ('oxygen/target', 'oxygen/joint_trajectory'):
        assert [info.node_name for info in client.get_publishers_info_by_topic(topic)] == [
            'oxygen_tick'
        ]

    def services(node):
        return dict(client.get_service_names_and_types_by_node(node, '/'))

    chain.rig.wait_for(lambda: '/oxygen/enable' in services('oxygen_tick'), 'the service')
    goals = '/oxygen/dialogue/_action/send_goal'
    chain.rig.wait_for(lambda: goals in services('oxygen'), 'those of the engine')
    assert '/oxygen/enable' not in services('oxygen')


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
    num_free, end_s = 0, time.monotonic() + TIMEOUT_S
    while num_free < 3:  # a busy machine may cost one now and then, but a hog five
        assert time.monotonic() < end_s, f'{num_free} hogs that cost no tick'
        targets = chain.hog()
        num_free += (
            longest_row(targets) == len(targets)
            and max(target.lateness_s for target in targets) < PERIOD_NS * 1e-9 / 2
        )


def test_the_tick_outlives_the_engine_in_hold_and_goes_on_with_the_next(chain):
    chain.move()
    start = len(chain.targets)
    chunk = chain.rig.received['oxygen/action_chunk'][-1]
    killed_ns = time.time_ns()
    chain.engine.close()
    end_ns = killed_ns + round((chunk.action_horizon * chunk.action_dt_s + 0.1) * 1e9)

    def late():
        due_ns = deadlines_ns(chain.targets[start:])
        return [target for target, ns in zip(chain.targets[start:], due_ns) if ns > end_ns]

    chain.rig.wait_for(lambda: len(chain.targets) > start + 10, 'targets without an engine')
    chain.rig.wait_for(lambda: bool(late()) and longest_row(late()) >= 25, '25 holds in a row')
    assert {(target.held, target.armed) for target in late()} == {(True, True)}
    # The robot here, whose middleware has lost a peer, may be silent for a moment too.
    assert {target.hold_reason for target in late()} <= {
        'chunk_exhausted',
        'stale_observation',
        'stale_state',
    }
    held = list(late()[-1].positions)
    assert all(list(target.positions) == held for target in late())

    restart = len(chain.targets)
    chain.engine = chain.make_engine()
    chain.rig.wait_for(
        lambda: sum(map(is_fresh, chain.targets[restart:])) > 25,
        'fresh targets of the next engine',
    )
    targets = chain.targets[start:]
    assert_on_the_grid(targets)  # the tick went on, and did not begin anew
    assert all(target.armed for target in targets)
    steps = np.abs(np.diff([list(target.positions) for target in targets], axis=0))
    assert steps.max() <= STEP_LIMIT + MAX_STEP_ERROR  # after a missing tick too


def test_a_signal_ends_the_process_in_a_hold(tmp_path):
    rig, record = Rig(), Record(tmp_path / 'record')
    program = command('oxygen_ros.nodes.tick_node', tmp_path / 'record')
    tick = NodeProcess(*program, engine_node='other', **AGES)
    try:
        rig.listen(Target, 'other/target')
        rig.listen(JointTrajectory, 'other/joint_trajectory')
        targets = rig.received['other/target']
        assert not rig.call(Trigger, 'other/hold').success  # disarmed, or not configured yet
        rig.wait_for(lambda: bool(targets) and targets[-1].hold_reason == 'no_chunk', 'a tick')
        assert not targets[-1].armed
        assert rig.call(SetBool, 'other/enable', SetBool.Request(data=True)).success
        rig.wait_for(lambda: bool(rig.received['other/joint_trajectory']), 'a held trajectory')
        tick.signal(signal.SIGTERM)
        rig.wait_for(lambda: not tick.is_running, 'the end')
        status, output = tick.wait()
        assert status == 0, output
        assert 'Traceback' not in output and 'ERROR' not in output, output
        last = record.of(Target, '/other/target')[-1]
        assert last.held and last.armed and last.hold_reason == 'shutdown'
        sent = record.of(JointTrajectory, '/other/joint_trajectory')[-1]
        assert sent.points[0].positions == last.positions
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
