# SPDX-License-Identifier: Apache-2.0
"""Faults of model and engine: a hold within its bound, a finding, and recovery by itself."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from action_msgs.msg import GoalStatus
from armed_rig import armed_rig
from diagnostic_msgs.msg import DiagnosticStatus
from rig import PERIOD_NS, TIMEOUT_S

from oxygen_ros.srv import UpdateSceneGraph

MS = 1_000_000
MAX_AGE_NS = 1000 * MS  # of an observation: what a chunk can be played on for

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class Fault:
    """Replaces a method of the model by one that notes when it first went wrong.

    :param method: a name.
    :param spoil: takes the true method and its arguments.
    """

    def __init__(self, rig, method, spoil):
        self.began_ns = None
        self._model, self._method = rig.node.robot.model, method
        true = getattr(self._model, method)

        def faulty(*args):
            if self.began_ns is None:
                self.began_ns = time.time_ns()
            return spoil(true, *args)

        setattr(self._model, method, faulty)

    def end(self):
        """Give the model its own method back."""
        vars(self._model).pop(self._method, None)


@pytest.fixture(scope='module')
def rig():
    """Return a rig whose engine counts as stuck after 1 s."""
    with armed_rig(
        engine__stuck_after_s=1.0,
        max_observation_age_ms=MAX_AGE_NS / MS,
        diagnostics__rate_hz=5.0,
        # Room for a dialogue that outlasts any pause of the machine.
        engine__max_text_tokens=4000,
        kv__num_text_blocks=600,
    ) as rig:
        yield rig


@pytest.fixture
def spoil(rig):
    """Spoil methods of the model until the end of the test at the latest."""
    faults = []

    def spoil(method, how):
        faults.append(Fault(rig, method, how))
        return faults[-1]

    rig.wait_for_fresh()
    yield spoil
    for fault in faults:
        fault.end()


def fail(true, *args):
    raise RuntimeError('broken on purpose')


def assert_no_fresh_target_after(rig, began_ns, bound_ns):
    """Fail unless all targets after a bound were holds of one pose, the last one sent included."""
    rig.wait_until_due(began_ns + bound_ns + 100 * MS)
    late = rig.targets_due(began_ns + bound_ns)
    assert late and all(target.held for target in late), [
        (target.tick, target.hold_reason) for target in late
    ]
    held = list(late[0].positions)
    assert all(list(target.positions) == held for target in late)
    assert np.isfinite(held).all()
    rig.wait_for(lambda: list(rig.sent[-1].points[0].positions) == held, 'the held pose')


@pytest.mark.parametrize(
    ('reason', 'how'),
    [
        ('refused_nonfinite', lambda true, action: np.full_like(true(action), np.nan)),
        ('refused_length', lambda true, action: true(action)[:, :-1]),
        ('refused_length', lambda true, action: true(action)[:0]),
    ],
    ids=['NaN', 'a joint too few', 'no steps'],
)
def test_an_action_that_cannot_be_played_is_a_hold_from_the_next_tick_on(rig, spoil, reason, how):
    fault = spoil('finish_action', how)
    rig.wait_for_hold(reason)
    # The tick after the chunk was handed over; until then, on a busy machine, the former one is
    # played, but not for longer than its observation allows.
    assert_no_fresh_target_after(rig, fault.began_ns, MAX_AGE_NS + PERIOD_NS)
    rig.wait_for_status(
        'actuation',
        lambda status: status.level == ERROR and 'the chunk or the target' in status.message,
    )
    fault.end()
    rig.wait_for_fresh()
    rig.wait_for_status(
        'actuation', lambda status: 'the chunk or the target' not in status.message
    )
    assert all(np.isfinite(message.points[0].positions).all() for message in rig.sent)
    assert not rig.node.faults.counts and not rig.node.robot.health.reports


def test_a_fault_of_the_engine_ends_live_requests_with_an_error_and_the_engine_goes_on(rig, spoil):
    num_before = rig.node.robot.health.num_faults
    talk = rig.ask(max_tokens=3500)
    rig.wait_for(lambda: bool(talk.feedback), 'feedback')

    def fail_once(true, *args):
        fault.end()
        fail(true)

    fault = spoil('encode_image', fail_once)
    result = rig.wait_for_result(talk)
    assert talk.status == GoalStatus.STATUS_ABORTED and result.finish_reason == 'error'
    assert rig.node.robot.health.num_faults == num_before + 1
    rig.wait_for_status(
        'engine', lambda status: status.level == WARN and 'broken on purpose' in status.message
    )
    rig.wait_for_fresh()
    assert rig.wait_for_result(rig.ask(max_tokens=4)).finish_reason in ('stop', 'length')


def test_an_engine_that_keeps_failing_holds_answers_and_recovers_when_the_cause_ends(rig, spoil):
    health = rig.node.robot.health
    fault = spoil('encode_image', fail)
    rig.wait_for(lambda: health.failed, 'the failure of the engine')
    rig.wait_for_hold('chunk_exhausted', 'stale_observation')
    talk = rig.ask()
    result = rig.wait_for_result(talk)
    assert talk.status == GoalStatus.STATUS_ABORTED and 'failed' in result.message
    update = rig.call(UpdateSceneGraph, 'oxygen/update_scene_graph')
    assert not update.success and 'failed' in update.message
    rig.wait_for_status(
        'engine', lambda status: status.level == ERROR and 'broken on purpose' in status.message
    )
    num_faults = health.num_faults
    rig.wait_for(lambda: health.num_faults > num_faults, 'another attempt')
    assert_no_fresh_target_after(rig, fault.began_ns, MAX_AGE_NS + PERIOD_NS)
    fault.end()
    rig.wait_for_fresh()
    assert not health.failed
    rig.wait_for_status('engine', lambda status: status.level < ERROR)
    assert rig.wait_for_result(rig.ask(max_tokens=4)).finish_reason in ('stop', 'length')


def test_a_stuck_engine_ends_in_a_hold_and_goes_on_when_it_can(rig, spoil):
    goes_on, ended_ns = threading.Event(), []

    def get_stuck(true, *args):
        fault.end()
        goes_on.wait(TIMEOUT_S)
        ended_ns.append(time.time_ns())
        return true(*args)

    fault = spoil('encode_image', get_stuck)
    rig.wait_for_hold('stale_observation', 'chunk_exhausted')
    rig.wait_for_status(
        'engine', lambda status: status.level == ERROR and 'no sign of life' in status.message
    )
    bound_ns = fault.began_ns + MAX_AGE_NS + PERIOD_NS
    rig.wait_for(lambda: len(rig.targets_due(bound_ns)) > 30, 'targets without an engine')
    goes_on.set()
    rig.wait_for_fresh()
    inside = rig.targets_due(bound_ns, ended_ns[0])
    assert len(inside) > 20 and all(target.held for target in inside)
    rig.wait_for_status('engine', lambda status: status.level < ERROR)
    assert rig.wait_for_result(rig.ask(max_tokens=4)).finish_reason in ('stop', 'length')


def burn_100_ms(true, *args):
    """Keep the interpreter as far as pure Python can."""
    end_s = time.monotonic() + 0.1
    while time.monotonic() < end_s:
        pass
    return true(*args)


def test_ticks_come_while_the_model_burns_100_ms_of_pure_python_in_each_pass(rig, spoil):
    start = len(rig.targets)
    fault = spoil('finish_action', burn_100_ms)

    def met_most_deadlines():  # a starved tick would meet a fifth of them
        ticks = [target.tick for target in rig.targets[start:]]
        return any(later - tick < 60 for tick, later in zip(ticks, ticks[30:]))

    rig.wait_for(met_most_deadlines, '30 ticks of less than 60')
    fault.end()
    rig.wait_for_fresh()


def test_ticks_missed_by_a_hogged_interpreter_are_counted_and_named(rig, spoil):
    libc = ctypes.PyDLL(None)  # unlike CDLL it does not let the interpreter go during a call
    thread = rig.node._plane.live.loop.thread
    num_before = thread.num_overruns

    def hog(true, *args):
        libc.usleep(100_000)
        return true(*args)

    fault = spoil('finish_action', hog)
    rig.wait_for(lambda: thread.num_overruns >= num_before + 6, 'missed ticks')
    rig.wait_for_status(
        'actuation', lambda status: status.level >= WARN and 'ticks missed' in status.message
    )
    fault.end()
    rig.wait_for_status('actuation', lambda status: 'ticks missed' not in status.message)
    rig.wait_for_fresh()
