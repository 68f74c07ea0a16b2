# SPDX-License-Identifier: Apache-2.0
"""The tick with its thread: what comes of a tick that fails."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from oxygen_ros.control import JointLimits, TickConfig
from oxygen_ros.errors import OxygenError
from oxygen_ros.robot import faults
from oxygen_ros.robot.actuation import Actuation
from oxygen_ros.robot.actuation_findings import actuation_status
from oxygen_ros.robot.faults import FaultLog, ListLogger
from oxygen_ros.robot.status import Finding, Level
from oxygen_ros.robot.tick_settings import ActuationLimits
from oxygen_ros.runtime.tick_loop import TickLoop
from oxygen_ros.types import ActionChunk, Provenance, RobotState

PERIOD_NS = 20_000_000
TIMEOUT_S = 60.0


class Outlet:
    """Keeps what is shown."""

    def __init__(self):
        self.decisions = []

    def command(self, values):
        pass

    def target(self, decision, lateness_ns, stamp_ns):
        self.decisions.append(decision)


class Clock:
    """This machine's steady clock, with ROS time on it."""

    def now_ns(self):
        return time.monotonic_ns()

    def offset_ns(self):
        return 0


def make_actuation(config, limits, newest_state, outlet, log=None):
    log = log or ListLogger()
    return Actuation(
        ('joint',),
        config,
        limits,
        0.1,
        newest_state,
        Clock(),
        outlet,
        lambda state, stamp_ns, request: None,
        log,
        FaultLog(log),
    )


def test_a_tick_that_fails_holds_and_the_next_ones_come():
    now_ns = time.monotonic_ns()
    state = RobotState(now_ns, now_ns, np.zeros(1, np.float32))
    failing = True

    def newest_state():
        if failing:
            raise RuntimeError('broken on purpose')
        return state

    outlet = Outlet()
    config = TickConfig(1, space=('joint_velocity',), state_max_age_s=1000.0)
    log = ListLogger()
    actuation = make_actuation(config, JointLimits.create(1), newest_state, outlet, log)
    loop = TickLoop(actuation, None)
    actuation.arming.enable()
    actuation.restart()
    loop.start(time.monotonic_ns())
    try:
        wait_for(lambda: len(outlet.decisions) >= 3)
        failing = False
        wait_for(lambda: outlet.decisions[-1].target.hold_reason != 'error')
        num_errors = loop.thread.num_errors
    finally:
        loop.stop('shutdown')
    status = actuation_status(actuation, True, num_errors, ActuationLimits())
    failed = f'{num_errors} ticks failed, last: RuntimeError: broken on purpose'
    assert Finding(Level.ERROR, failed) in status.findings
    assert any('Traceback' in line and 'newest_state' in line for line in log.lines)
    targets = [decision.target for decision in outlet.decisions]
    failed = [target for target in targets if target.hold_reason == 'error']
    assert len(failed) == num_errors >= 3
    assert all(target.values.tolist() == [0.0] for target in failed)  # what stops a velocity


@pytest.mark.parametrize('broken', ['decide', 'undo'])
def test_a_failed_tick_is_named_in_diagnostics_and_its_traceback_logged_once_in_a_while(
    monkeypatch, broken
):
    def fail(*_):
        raise OxygenError(f'broken for the {num_failed}th time')

    times_s = [100.0, 100.1, 104.9, 105.1]
    monkeypatch.setattr(faults, 'time', SimpleNamespace(monotonic=lambda: times_s[num_failed - 1]))
    played = Played()
    played.actuation.decide(0, 0)
    monkeypatch.setattr(played.actuation.tick, broken, fail)
    num_logged = []
    for num_failed in range(1, 1 + len(times_s)):
        with pytest.raises(OxygenError):
            played.actuation.decide(num_failed * PERIOD_NS, num_failed)
        last_line = f'oxygen_ros.errors.OxygenError: broken for the {num_failed}th time'
        status = actuation_status(played.actuation, True, num_failed, ActuationLimits())
        failed = f'{num_failed} ticks failed, last: {last_line}'
        assert Finding(Level.ERROR, failed) in status.findings
        num_logged.append(sum('Traceback' in line for line in played.log.lines))
    assert num_logged == [1, 1, 1, 2]
    assert all(' in fail\n' in line for line in played.log.lines)
    assert list(played.log.lines)[-1].endswith(last_line)


class Played:
    """One joint that a chunk moves at 1 rad/s from tick 0 on, ticked by hand."""

    def __init__(self, **limits):
        self.outlet, self.log = Outlet(), ListLogger()
        state = RobotState(0, 0, np.zeros(1, np.float32))
        config = TickConfig(
            1,
            state_max_age_s=1000.0,
            max_observation_age_ms=60_000.0,
            activation_ramp_s=0.0,
            recovery_ramp_s=0.0,
        )
        self.actuation = make_actuation(
            config, JointLimits.create(1, **limits), lambda: state, self.outlet, self.log
        )
        self.actuation.arming.enable()
        epoch = self.actuation.restart()
        self.actuation.buffer.add(
            ActionChunk(
                1,
                epoch,
                0.02 * np.arange(50, dtype=np.float32)[:, None],
                0,
                0,
                PERIOD_NS,
                0,
                0,
                0,
                Provenance(1, 0, ('front',), (0,), 0, 'sum'),
            )
        )

    def tick(self, number):
        self.actuation.decide(number * PERIOD_NS, number)
        self.actuation.send(number * PERIOD_NS, number)

    @property
    def sent(self):
        return self.outlet.decisions

    @property
    def values(self):
        return [decision.target.values.item() for decision in self.sent]


def test_a_target_that_was_decided_and_never_sent_leaves_no_trace():
    played, other = Played(max_velocity=0.5), Played(max_velocity=0.5)
    for number in range(3):
        played.tick(number)
        other.tick(number)
    for number in (3, 4, 5):
        played.actuation.decide(number * PERIOD_NS, number)  # its deadline passed meanwhile
    played.tick(6)
    other.tick(6)
    assert played.values == other.values
    # A step from what was sent before: the actuators saw none of those between.
    assert np.isclose(np.diff(played.values)[-1], 0.5 * 0.02)


def test_the_last_hold_is_at_what_was_sent():
    played = Played()
    for number in range(3):
        played.tick(number)
    played.actuation.decide(3 * PERIOD_NS, 3)
    played.actuation.finish(4, 'deactivated')
    assert played.sent[-1].target.hold_reason == 'deactivated'
    assert played.values[-1] == played.values[-2]


@pytest.mark.parametrize(
    ('request_', 'reason', 'is_sent'),
    [
        ('stop', 'stopped', True),
        ('hold', 'hold_requested', True),
        ('disarm', '', False),
        ('takeover', 'takeover', False),
    ],
)
def test_who_drives_may_change_after_the_decision(request_, reason, is_sent):
    played = Played()
    for number in range(3):
        played.tick(number)
    played.actuation.decide(3 * PERIOD_NS, 3)
    getattr(played.actuation.arming, request_)()
    played.actuation.send(3 * PERIOD_NS, 3)
    assert [decision.target.tick for decision in played.sent] == [0, 1, 2, 3]
    last = played.sent[-1]
    assert (last.target.hold_reason, last.armed) == (reason, is_sent)
    if is_sent:
        assert played.values[-1] == played.values[-2]


def wait_for(condition):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
