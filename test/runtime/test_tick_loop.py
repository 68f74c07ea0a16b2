# SPDX-License-Identifier: Apache-2.0
"""The tick with its thread: what comes of a tick that fails."""

import time

import numpy as np
import pytest

from oxygen_ros.control import JointLimits, TickConfig
from oxygen_ros.runtime.tick_loop import TickLoop, TickLoopConfig
from oxygen_ros.runtime.tick_thread import TickThread
from oxygen_ros.types import ActionChunk, Provenance, RobotState

PERIOD_NS = 20_000_000
TIMEOUT_S = 10.0


def test_a_tick_that_fails_holds_and_the_next_ones_come():
    decisions = []
    now_ns = time.monotonic_ns()
    state = RobotState(now_ns, now_ns, np.zeros(1, np.float32))
    failing = True

    def newest_state():
        if failing:
            raise RuntimeError('broken on purpose')
        return state

    loop = TickLoop(
        TickLoopConfig(
            TickConfig(1, space=('joint_velocity',), state_max_age_s=1000.0), JointLimits.create(1)
        ),
        lambda decision, lateness_ns: decisions.append(decision.target),
        newest_state,
    )
    loop.arming.enable()
    loop.prepare()
    loop.start(time.monotonic_ns())
    try:
        wait_for(lambda: len(decisions) >= 3)
        failing = False
        wait_for(lambda: decisions[-1].hold_reason != 'error')
        num_errors = loop.thread.num_errors
    finally:
        loop.stop('shutdown')
    failed = [target for target in decisions if target.hold_reason == 'error']
    assert len(failed) == num_errors >= 3
    assert all(target.values.tolist() == [0.0] for target in failed)  # what stops a velocity


class Played:
    """One joint that a chunk moves at 1 rad/s from tick 0 on, ticked by hand."""

    def __init__(self, **limits):
        self.sent = []
        state = RobotState(0, 0, np.zeros(1, np.float32))
        self.loop = TickLoop(
            TickLoopConfig(
                TickConfig(
                    1,
                    state_max_age_s=1000.0,
                    max_observation_age_ms=60_000.0,
                    activation_ramp_s=0.0,
                    recovery_ramp_s=0.0,
                ),
                JointLimits.create(1, **limits),
            ),
            lambda decision, lateness_ns: self.sent.append(decision),
            lambda: state,
        )
        self.loop.arming.enable()
        epoch = self.loop.prepare()
        self.loop.buffer.add(
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
        self.loop.decide(number * PERIOD_NS, number)
        self.loop.send(number * PERIOD_NS, number)

    @property
    def values(self):
        return [decision.target.values.item() for decision in self.sent]


def test_a_target_that_was_decided_and_never_sent_leaves_no_trace():
    played, other = Played(max_velocity=0.5), Played(max_velocity=0.5)
    for number in range(3):
        played.tick(number)
        other.tick(number)
    for number in (3, 4, 5):
        played.loop.decide(number * PERIOD_NS, number)  # its deadline passed meanwhile
    played.tick(6)
    other.tick(6)
    assert played.values == other.values
    # A step from what was sent before: the actuators saw none of those between.
    assert np.isclose(np.diff(played.values)[-1], 0.5 * 0.02)


def test_the_last_hold_is_at_what_was_sent():
    played = Played()
    for number in range(3):
        played.tick(number)
    played.loop.decide(3 * PERIOD_NS, 3)
    played.loop._thread = TickThread(1.0, lambda deadline_ns, tick: None)  # that has ended
    played.loop.stop('deactivated')
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
    played.loop.decide(3 * PERIOD_NS, 3)
    getattr(played.loop.arming, request_)()
    played.loop.send(3 * PERIOD_NS, 3)
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
