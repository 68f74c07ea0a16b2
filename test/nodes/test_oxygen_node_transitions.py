# SPDX-License-Identifier: Apache-2.0
"""Transitions of the node: those that are not possible, errors, the end, and many in a row."""

from __future__ import annotations

import gc
import threading

import psutil
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from rig import overrides, Rig, stamp_ns
from std_srvs.srv import SetBool

from oxygen_ros.msg import LatencyReport, Target
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.nodes.tick_node import TickNode
from oxygen_ros.srv import GetMemoryReport

SUCCESS, ERROR = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.ERROR
MIB = 1 << 20
THREADS = ('oxygen_engine', 'oxygen_tick', 'oxygen_ingest')

POSSIBLE = {
    State.PRIMARY_STATE_UNCONFIGURED: {
        Transition.TRANSITION_CONFIGURE,
        Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
    },
    State.PRIMARY_STATE_INACTIVE: {
        Transition.TRANSITION_CLEANUP,
        Transition.TRANSITION_ACTIVATE,
        Transition.TRANSITION_INACTIVE_SHUTDOWN,
    },
    State.PRIMARY_STATE_ACTIVE: {
        Transition.TRANSITION_DEACTIVATE,
        Transition.TRANSITION_ACTIVE_SHUTDOWN,
    },
    State.PRIMARY_STATE_FINALIZED: set(),
}
# All that the interface knows, the internal ones that end a transition, and numbers it has not.
TRANSITIONS = (*range(12), 20, 30, 40, 50, 60, 61, 62, 97, 200)
LABELS = ('activat', 'transition_success', 'destroy', 'x' * 300)


@pytest.fixture
def rig():
    """Return a rig with a node that ends with the test."""
    rig = Rig()
    rig.node = OxygenNode(context=rig.context, parameter_overrides=overrides())
    rig.executor.add_node(rig.node)
    yield rig
    if rig.node.robot is not None:
        rig.node.trigger_shutdown()
    rig.executor.remove_node(rig.node)
    rig.node.destroy_node()
    rig.close()


def bring_to(node, state):
    """Bring an unconfigured node to a primary state."""
    if state in (State.PRIMARY_STATE_INACTIVE, State.PRIMARY_STATE_ACTIVE):
        assert node.trigger_configure() == SUCCESS
    if state == State.PRIMARY_STATE_ACTIVE:
        assert node.trigger_activate() == SUCCESS
    if state == State.PRIMARY_STATE_FINALIZED:
        assert node.trigger_shutdown() == SUCCESS


def state_of(rig):
    return rig.call(GetState, 'oxygen/get_state').current_state.id


@pytest.mark.parametrize('state', POSSIBLE)
def test_a_transition_that_is_not_possible_is_refused_and_changes_nothing(rig, state):
    bring_to(rig.node, state)
    runtime = rig.node.robot
    asked = [Transition(id=number) for number in TRANSITIONS if number not in POSSIBLE[state]]
    for transition in (*asked, *(Transition(label=label) for label in LABELS)):
        request = ChangeState.Request(transition=transition)
        assert not rig.call(ChangeState, 'oxygen/change_state', request).success, transition
        assert state_of(rig) == state
    assert rig.node.robot is runtime and not rig.node.faults.counts
    if state == State.PRIMARY_STATE_ACTIVE:
        rig.listen(Target, 'oxygen/target')
        rig.wait_for(lambda: len(rig.received['oxygen/target']) > 5, 'ticks')
    response = rig.call(GetMemoryReport, 'oxygen/get_memory_report')
    assert response.success == (runtime is not None)


@pytest.mark.parametrize('state', [state for state in POSSIBLE if POSSIBLE[state]])
def test_shutdown_from_each_state_frees_all_and_the_node_still_answers(rig, state):
    bring_to(rig.node, state)
    assert rig.node.trigger_shutdown() == SUCCESS
    assert rig.node.robot is None
    assert state_of(rig) == State.PRIMARY_STATE_FINALIZED
    response = rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True))
    assert not response.success and response.message.startswith('expected')
    assert not any(thread.name in THREADS for thread in threading.enumerate())


@pytest.mark.parametrize('kind', [OxygenNode, TickNode])
def test_a_destroyed_node_is_gone_for_others_while_its_object_is_still_there(kind):
    rig, context = Rig(), Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    node = kind('gone', context=context, parameter_overrides=overrides())

    def is_there():
        return any(
            name.startswith('/gone') for name, _ in rig.client.get_service_names_and_types()
        )

    try:
        assert node.trigger_configure() == SUCCESS
        rig.wait_for(is_there, 'its services')
        gc.disable()
        node.destroy_node()
        node.destroy_node()  # once more changes nothing
        rig.wait_for(lambda: not is_there(), 'the end of its services')
    finally:
        gc.enable()
        context.try_shutdown()
        rig.close()


@pytest.mark.parametrize(('kind', 'name'), [(OxygenNode, 'other'), (TickNode, 'other_tick')])
def test_a_node_that_is_destroyed_while_active_holds_and_leaves_no_thread(rig, kind, name):
    node = kind(name, context=rig.context, parameter_overrides=overrides(engine_node='other'))
    rig.listen(Target, 'other/target')
    targets = rig.received['other/target']
    bring_to(node, State.PRIMARY_STATE_ACTIVE)
    rig.wait_for(lambda: bool(targets), 'a target')
    assert any(thread.name == 'oxygen_tick' for thread in threading.enumerate())
    node.destroy_node()
    rig.wait_for(lambda: targets[-1].hold_reason == 'shutdown', 'the last hold')
    assert not any(thread.name in THREADS for thread in threading.enumerate())
    assert not node.faults.counts


def fail(*args, **kwargs):
    raise RuntimeError('broken on purpose')


def test_an_error_while_activating_stops_what_had_started_and_the_node_can_begin_again(
    rig, monkeypatch
):
    rig.node.trigger_configure()
    with monkeypatch.context() as patch:
        patch.setattr(rig.node.robot.scene, 'start', fail)  # engine and tick run by then
        assert rig.node.trigger_activate() == ERROR
    assert_error_was_overcome(rig)


@pytest.mark.parametrize('broken', ['an exception', 'an engine that does not stop'])
def test_an_error_while_deactivating_ends_in_a_hold_and_the_node_can_begin_again(
    rig, monkeypatch, broken
):
    rig.listen(Target, 'oxygen/target')
    targets = rig.received['oxygen/target']
    rig.node.trigger_configure()
    rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True))
    rig.node.trigger_activate()
    rig.wait_for(lambda: bool(targets) and not targets[-1].held, 'a fresh target')
    with monkeypatch.context() as patch:
        if broken == 'an exception':
            dialogue = rig.node.robot.dialogue
            patch.setattr(dialogue, 'stop', once(dialogue.stop, fail))
        else:
            thread = rig.node._plane.live.engine_thread
            patch.setattr(thread, 'stop', once(thread.stop, lambda timeout_s: False))
        assert rig.node.trigger_deactivate() == ERROR
    rig.wait_for(lambda: targets[-1].hold_reason in ('error', 'deactivated'), 'the last hold')
    assert targets[-1].armed
    assert_error_was_overcome(rig)


def once(true, first):
    """Return a function that is another one at its first call."""
    calls = iter([first])
    return lambda *args, **kwargs: next(calls, true)(*args, **kwargs)


def test_a_configuration_that_fails_leaves_the_node_unconfigured(rig, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr('oxygen_ros.nodes.data_plane.LiveRobot', fail)
        assert rig.node.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert_error_was_overcome(rig)


def assert_error_was_overcome(rig):
    """Fail unless nothing is left of the node's life so far, and another one begins."""
    assert rig.node.robot is None and state_of(rig) == State.PRIMARY_STATE_UNCONFIGURED
    since_ns = rig.node.get_clock().now().nanoseconds
    targets = rig.received['oxygen/target']
    rig.listen(Target, 'oxygen/target')
    assert rig.node.trigger_configure() == SUCCESS and rig.node.trigger_activate() == SUCCESS
    rig.wait_for(
        lambda: any(not target.held and stamp_ns(target) > since_ns for target in targets),
        'a fresh target',
    )


def test_an_inactive_node_publishes_neither_targets_nor_latency(rig):
    for kind, topic in (
        (Target, 'oxygen/target'),
        (LatencyReport, 'oxygen/latency'),
        (DiagnosticArray, '/diagnostics'),
    ):
        rig.listen(kind, topic)
    bring_to(rig.node, State.PRIMARY_STATE_ACTIVE)
    rig.wait_for(lambda: bool(rig.received['oxygen/latency']), 'a report')
    rig.node.trigger_deactivate()
    targets = rig.received['oxygen/target']
    rig.wait_for(
        lambda: any(target.hold_reason == 'deactivated' for target in targets[-1:]),
        'the last target',
    )
    last, ended_ns = targets[-1], rig.node.get_clock().now().nanoseconds
    # It still says how it is, once a second.
    rig.wait_for(
        lambda: sum(stamp_ns(array) > ended_ns for array in rig.received['/diagnostics']) >= 2,
        'diagnostics of the inactive node',
    )
    assert targets[-1] is last
    assert all(stamp_ns(report) <= ended_ns for report in rig.received['oxygen/latency'])


@pytest.mark.parametrize('repeats', [2, pytest.param(50, marks=pytest.mark.slow)])
def test_lives_in_a_row_leave_nothing_behind(rig, repeats):
    process = psutil.Process()

    def live():
        assert rig.node.trigger_configure() == SUCCESS and rig.node.trigger_activate() == SUCCESS
        passes = rig.node.robot.engine.counters
        rig.wait_for(lambda: passes.action_passes > 2, 'action passes')
        talk = rig.ask(max_tokens=8)
        assert rig.node.trigger_deactivate() == SUCCESS and rig.node.trigger_cleanup() == SUCCESS
        rig.wait_for_result(talk)
        gc.collect()

    def counts():
        node = rig.node
        entities = (
            node.publishers,
            node.subscriptions,
            node.timers,
            node.services,
            node.guards,
            node.waitables,
        )
        return [
            threading.active_count(),
            process.num_fds(),
            *(len(list(kind)) for kind in entities),
        ]

    for _ in range(2):  # what is made once
        live()
    before, rss = counts(), process.memory_info().rss
    for _ in range(repeats):
        live()
    rig.wait_for(lambda: counts() == before, f'{before}, got {counts()}')
    grown_mib = (process.memory_info().rss - rss) / MIB
    assert grown_mib < 8.0 + 0.2 * repeats, grown_mib
    print(f'{grown_mib:+.1f} MiB in {repeats} lives')
    assert not rig.node.faults.counts
