# SPDX-License-Identifier: Apache-2.0
"""Deadlines on a virtual clock: exact, never drifting, never bursting."""

from itertools import pairwise

from control_rig import MS, PERIOD_NS, START_NS
from hypothesis import given
from hypothesis import strategies as st
import pytest

from oxygen_ros.control import Cadence, SteadyClock
from oxygen_ros.engine.clock import VirtualWorkClock


def test_deadlines_stay_on_their_grid_whatever_the_wake_ups():
    cadence = Cadence(PERIOD_NS, START_NS)
    for tick in range(3000):
        assert cadence.deadline_ns == START_NS + tick * PERIOD_NS
        assert cadence.skip_missed(cadence.deadline_ns + 3 * MS) == 0
        cadence.advance()
    assert cadence.num_missed == 0


def test_a_deadline_reached_half_a_period_late_is_still_served_and_later_is_not():
    assert Cadence(PERIOD_NS, START_NS).skip_missed(START_NS + 10 * MS) == 0
    cadence = Cadence(PERIOD_NS, START_NS)
    assert cadence.skip_missed(START_NS + 10 * MS + 1) == 1
    assert cadence.deadline_ns == START_NS + PERIOD_NS


def test_a_stall_of_100_ms_is_counted_and_the_next_deadline_keeps_its_place():
    cadence = Cadence(PERIOD_NS, START_NS)
    assert cadence.skip_missed(START_NS + 100 * MS + 1) == 5
    assert (cadence.tick, cadence.deadline_ns) == (5, START_NS + 100 * MS)


def test_a_day_asleep_is_skipped_at_once():
    cadence = Cadence(PERIOD_NS, START_NS)
    day_ns = 86_400 * 1000 * MS
    assert cadence.skip_missed(START_NS + day_ns) == day_ns // PERIOD_NS


@given(stalls_ns=st.lists(st.integers(0, 500 * MS), min_size=1, max_size=50))
def test_two_runs_are_never_closer_than_half_a_period(stalls_ns):
    clock = VirtualWorkClock(START_NS)
    cadence = Cadence(PERIOD_NS, START_NS)
    runs_ns = []
    for stall_ns in stalls_ns:
        clock.advance_to(cadence.deadline_ns)
        clock.charge(stall_ns)
        before = cadence.tick
        missed = cadence.skip_missed(clock.now_ns())
        assert cadence.tick == before + missed
        if clock.now_ns() < cadence.deadline_ns:
            continue
        assert 0 <= clock.now_ns() - cadence.deadline_ns <= PERIOD_NS // 2
        runs_ns.append(clock.now_ns())
        cadence.advance()
    assert all(b - a >= PERIOD_NS // 2 for a, b in pairwise(runs_ns))


def test_a_clock_standing_still_misses_nothing():
    cadence = Cadence(PERIOD_NS, START_NS)
    assert [cadence.skip_missed(START_NS - MS) for _ in range(5)] == [0] * 5


@pytest.mark.parametrize('settings', [(0, 0), (-1, 0), (10, 0, 10), (10, 0, -1)])
def test_a_period_or_lateness_out_of_range_is_refused(settings):
    with pytest.raises(ValueError, match='_ns: expected'):
        Cadence(*settings)


def test_the_steady_clock_never_runs_backward():
    clock = SteadyClock()
    readings = [clock.now_ns() for _ in range(100)]
    assert readings == sorted(readings)
