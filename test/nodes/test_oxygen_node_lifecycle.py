# SPDX-License-Identifier: Apache-2.0
"""The node's lifecycle in this process: every transition, again and again, two nodes at once."""

from __future__ import annotations

import gc
import weakref

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Time
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rig import deadlines_ns, overrides, PERIOD_NS, Rig
from rosgraph_msgs.msg import Clock as ClockMessage
from std_srvs.srv import SetBool, Trigger

from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.srv import GetMemoryReport, GetSceneGraph, SetInstruction, UpdateSceneGraph

SUCCESS = TransitionCallbackReturn.SUCCESS


@pytest.fixture
def rig():
    """Return a rig that ends with the test."""
    rig = Rig()
    yield rig
    rig.close()


@pytest.fixture
def make_node(rig):
    """Make nodes that end with the test."""
    nodes = []

    def make(name='oxygen', **parameters):
        node = OxygenNode(name, context=rig.context, parameter_overrides=overrides(**parameters))
        nodes.append(node)
        rig.executor.add_node(node)
        return node

    yield make
    for node in nodes:
        if node.robot is not None:
            node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()


def entity_counts(node):
    return (
        len(list(node.publishers)),
        len(list(node.subscriptions)),
        len(list(node.timers)),
        len(list(node.services)),
        len(list(node.guards)),
    )


@pytest.mark.slow
def test_a_node_goes_through_its_life_several_times_and_leaves_nothing_behind(rig, make_node):
    node = make_node()
    rig.listen(Target, 'oxygen/target')
    before = entity_counts(node)
    for _ in range(4):
        assert node.trigger_configure() == SUCCESS
        runtime = weakref.ref(node.robot)
        assert node.trigger_activate() == SUCCESS
        count = len(rig.received['oxygen/target'])
        rig.wait_for(
            lambda count=count: (
                len(rig.received['oxygen/target']) > count + 5
                and not rig.received['oxygen/target'][-1].held
            ),
            'fresh targets',
        )
        assert node.trigger_deactivate() == SUCCESS
        assert node.trigger_cleanup() == SUCCESS
        assert node.robot is None
        assert entity_counts(node) == before
        rig.wait_for(
            lambda runtime=runtime: gc.collect() >= 0 and runtime() is None,
            'the end of the runtime',
        )
    assert not node.faults.counts
    held = [
        target for target in rig.received['oxygen/target'] if target.hold_reason == 'deactivated'
    ]
    assert len(held) >= 3


@pytest.mark.slow
def test_ticks_chunks_and_observations_count_from_each_activation(rig, make_node):
    node = make_node()
    rig.listen(Target, 'oxygen/target')
    targets = rig.received['oxygen/target']
    node.trigger_configure()
    for _ in range(2):
        targets.clear()
        activated_ns = node.get_clock().now().nanoseconds
        node.trigger_activate()
        rig.wait_for(
            lambda: (
                bool(targets)
                and targets[-1].tick > 80
                and max(targets[-1].chunk_ids, default=0) > 40
            ),
            'fresh targets',
        )
        node.trigger_deactivate()
        due_ns = deadlines_ns(targets)
        assert due_ns[0] - targets[0].tick * PERIOD_NS > activated_ns
        # At most one pass begins in each period; the first ones, before the first tick.
        first = next(target for target in targets if target.chunk_ids)
        assert max(first.chunk_ids) <= first.tick + 10
        rig.wait_for(lambda: targets[-1].hold_reason == 'deactivated', 'the last target')


def test_a_node_that_is_not_active_answers_every_call_with_the_reason(rig, make_node):
    make_node()
    for kind, name in (
        (SetBool, 'enable'),
        (Trigger, 'stop'),
        (Trigger, 'hold'),
        (Trigger, 'takeover'),
        (SetInstruction, 'set_instruction'),
        (GetMemoryReport, 'get_memory_report'),
        (GetSceneGraph, 'get_scene_graph'),
        (UpdateSceneGraph, 'update_scene_graph'),
    ):
        response = rig.call(kind, f'oxygen/{name}')
        assert not response.success and response.message.startswith('expected'), name
    talk = rig.ask()
    result = rig.wait_for_result(talk)
    assert talk.status == GoalStatus.STATUS_ABORTED
    assert result.finish_reason == 'refused' and 'active' in result.message


def test_deactivation_aborts_goals_and_answers_waiting_services(rig, make_node):
    # Room for a dialogue that outlasts any pause of the machine.
    node = make_node(
        dialogue__max_concurrent=1, engine__max_text_tokens=4000, kv__num_text_blocks=600
    )
    node.trigger_configure()
    node.trigger_activate()
    rig.wait_for(lambda: node.robot.engine.counters.action_passes > 0, 'a first chunk')
    running, waiting = rig.ask(max_tokens=3500), rig.ask(max_tokens=3500)
    rig.wait_for(lambda: bool(running.feedback), 'feedback')
    assert node.trigger_deactivate() == SUCCESS
    assert node.trigger_cleanup() == SUCCESS
    for talk in (running, waiting):
        result = rig.wait_for_result(talk)
        assert talk.status == GoalStatus.STATUS_ABORTED
        assert result.finish_reason == 'error' and result.message
    assert running.result.text and not waiting.result.text


def test_arming_ends_with_deactivation(rig, make_node):
    node = make_node()
    node.trigger_configure()
    assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
    node.trigger_activate()
    assert node.robot.actuation.arming.view().sending
    node.trigger_deactivate()
    assert not node.robot.actuation.arming.view().sending


def test_two_nodes_live_in_one_process(rig, make_node):
    nodes = [make_node(name) for name in ('one', 'two')]
    for name in ('one', 'two'):
        rig.listen(Target, f'{name}/target')
    for node in nodes:
        assert node.trigger_configure() == SUCCESS
        assert node.trigger_activate() == SUCCESS
    rig.wait_for(
        lambda: all(
            bool(rig.received[f'{name}/target']) and not rig.received[f'{name}/target'][-1].held
            for name in ('one', 'two')
        ),
        'fresh targets of both',
    )


def test_a_configuration_that_cannot_be_met_leaves_the_node_unconfigured(rig, make_node):
    node = make_node(memory__max_new_objects=60)  # such a scene graph exceeds max_text_tokens
    before = entity_counts(node)
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert node.robot is None
    assert entity_counts(node) == before
    changed = node.set_parameters([Parameter('memory.max_new_objects', value=4)])
    assert changed[0].successful, changed[0].reason
    assert node.trigger_configure() == SUCCESS


def test_live_parameters_are_applied_as_a_whole_or_refused(rig, make_node):
    node = make_node(max_observation_age_ms=400.0)
    node.trigger_configure()
    refused = node.set_parameters_atomically(
        [
            Parameter('max_observation_age_ms', value=200.0),
            Parameter('limits.max_velocity', value=[1.0, 2.0]),
        ]
    )
    assert not refused.successful and 'limits.max_velocity' in refused.reason
    assert node.robot.actuation.tick.config.max_observation_age_ns == 400_000_000
    assert node.get_parameter('max_observation_age_ms').value == 400.0
    accepted = node.set_parameters_atomically(
        [
            Parameter('max_observation_age_ms', value=200.0),
            Parameter('limits.max_velocity', value=[1.0, 2.0, 3.0]),
        ]
    )
    assert accepted.successful, accepted.reason
    assert node.robot.actuation.tick.config.max_observation_age_ns == 200_000_000
    fixed = node.set_parameters([Parameter('kv.block_size', value=32)])
    assert not fixed[0].successful and 'unconfigured' in fixed[0].reason


def test_an_exception_in_a_callback_is_counted_and_ends_nothing(rig, make_node, monkeypatch):
    node = make_node()
    node.trigger_configure()

    def fail(*args):
        raise RuntimeError('broken on purpose')

    monkeypatch.setattr(node.robot.sensors, 'put_state', fail)
    monkeypatch.setattr(node.robot, 'memory_report', fail)
    response = rig.call(GetMemoryReport, 'oxygen/get_memory_report')
    assert not response.success and 'broken on purpose' in response.message
    assert node.faults.counts['get_memory_report'] == 1


def test_a_jump_of_simulated_time_drops_what_came_before_and_the_node_goes_on(rig, make_node):
    node = make_node(use_sim_time=True)
    clock = rig.client.create_publisher(ClockMessage, '/clock', 10)
    node.trigger_configure()
    node.trigger_activate()

    def set_time(seconds):
        rig.wait_for(
            lambda: (
                clock.publish(ClockMessage(clock=Time(sec=seconds)))
                or node.get_clock().now().nanoseconds == seconds * 10**9
            ),
            'a time',
        )

    started = node.robot.actuation.buffer.epoch
    set_time(100)  # time begins, which is a jump
    rig.wait_for(lambda: node.robot.actuation.buffer.epoch > started, 'the first reset')
    before = node.robot.actuation.buffer.epoch
    set_time(101)
    assert node.robot.actuation.buffer.epoch == before
    set_time(50)
    rig.wait_for(lambda: node.robot.actuation.buffer.epoch > before, 'a reset')
    rig.listen(Target, 'oxygen/target')
    targets = rig.received['oxygen/target']
    rig.wait_for(lambda: len(targets) > 10, 'ticks, whose time is steady')
    rig.wait_for(
        lambda: targets[-1].header.stamp.sec in (49, 50), 'a stamp of a deadline, which is not now'
    )
    assert not node.faults.counts
