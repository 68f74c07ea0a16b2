# SPDX-License-Identifier: Apache-2.0
"""The tick's thread: on virtual time, and once on the machine's own."""

import os
import threading

from control_rig import MS, PERIOD_NS, START_NS
import pytest

from oxygen_ros.control import RealtimeSettings, SteadyClock
from oxygen_ros.engine.clock import VirtualWorkClock
from oxygen_ros.runtime.tick_thread import TickThread

AHEAD_NS = MS // 2
JOIN_S = 60.0


class VirtualRun:
    """A thread on virtual time: a callback takes as long as its test says, and no real time.

    :param ahead_ms: how long each call ahead of a tick takes; None: there are none.
    """

    def __init__(self, num_ticks, durations_ms=None, wake_up_ms=None, ahead_ms=None):
        self.clock = VirtualWorkClock(START_NS)
        self.ticks = []
        self.num_ticks = num_ticks
        self.durations_ms = durations_ms or {}
        self.wake_up_ms = wake_up_ms or {}
        self.ahead_ms = ahead_ms
        self.aheads = []
        self.thread = TickThread(
            0.02,
            self.callback,
            self.clock,
            sleep_until_ns=self.sleep_until_ns,
            ahead=None if ahead_ms is None else self.ahead,
            ahead_ns=AHEAD_NS,
        )

    def sleep_until_ns(self, deadline_ns):
        self.clock.advance_to(deadline_ns)
        self.clock.charge(self.wake_up_ms.pop(len(self.ticks), 0) * MS)

    def ahead(self, deadline_ns, tick):
        self.aheads.append((tick, deadline_ns, self.clock.now_ns()))
        self.clock.charge(round(self.ahead_ms.get(tick, 0) * MS))

    def callback(self, deadline_ns, tick):
        self.ticks.append((tick, deadline_ns, self.clock.now_ns()))
        if len(self.ticks) == self.num_ticks:
            assert self.thread.stop() is False
        self.clock.charge(self.durations_ms.get(tick, 0) * MS)

    def run(self):
        self.thread.start(START_NS)
        self.thread._thread.join(JOIN_S)
        assert not self.thread.running
        return [tick for tick, _, _ in self.ticks]


def test_ticks_come_at_their_deadlines():
    run = VirtualRun(3000)
    assert run.run() == list(range(3000))
    assert all(
        now_ns == deadline_ns == START_NS + tick * PERIOD_NS
        for tick, deadline_ns, now_ns in run.ticks
    )
    assert (run.thread.num_ticks, run.thread.num_overruns) == (3000, 0)


def test_a_callback_of_100_ms_costs_the_ticks_inside_and_no_other():
    run = VirtualRun(6, durations_ms={2: 105})
    assert run.run() == [0, 1, 2, 7, 8, 9]
    assert run.thread.num_overruns == 4
    lateness_ms = [(now_ns - deadline_ns) / MS for _, deadline_ns, now_ns in run.ticks]
    assert lateness_ms == [0, 0, 0, 5, 0, 0]


def test_a_late_wake_up_skips_to_the_next_deadline_of_the_grid():
    run = VirtualRun(5, wake_up_ms={2: 95, 4: 8})
    assert run.run() == [0, 1, 7, 8, 9]
    assert [(now_ns - deadline_ns) / MS for _, deadline_ns, now_ns in run.ticks] == [0, 0, 0, 0, 8]


def test_what_is_done_ahead_begins_right_before_each_deadline():
    run = VirtualRun(100, ahead_ms={})
    assert run.run() == list(range(100)) == [tick for tick, _, _ in run.aheads]
    assert all(deadline_ns - now_ns == AHEAD_NS for _, deadline_ns, now_ns in run.aheads[1:])
    assert all(now_ns == deadline_ns for _, deadline_ns, now_ns in run.ticks)


def test_what_takes_too_long_ahead_costs_its_tick_as_a_late_one():
    run = VirtualRun(4, ahead_ms={1: 4, 2: 31.5})
    assert run.run() == [0, 1, 4, 5]
    assert [tick for tick, _, _ in run.aheads] == [0, 1, 2, 4, 5]
    assert run.thread.num_overruns == 2
    assert run.ticks[1][2] - run.ticks[1][1] == 4 * MS - AHEAD_NS


def test_an_exception_is_counted_and_the_next_tick_comes_as_ever():
    seen = []

    def callback(_, tick):
        seen.append(tick)
        clock.charge(MS)
        if tick == 4:
            thread.stop()
        if tick % 2:
            raise KeyError(f'tick {tick}')

    clock = VirtualWorkClock()
    thread = TickThread(
        0.02,
        callback,
        clock,
        sleep_until_ns=clock.advance_to,
    )
    thread.start(0)
    thread._thread.join(JOIN_S)
    assert seen == [0, 1, 2, 3, 4]
    assert (thread.num_ticks, thread.num_errors) == (5, 2)


def test_on_the_machine_it_ticks_starts_again_and_stops(request):
    ticks = []
    enough = threading.Event()

    def callback(deadline_ns, tick):
        ticks.append((tick, SteadyClock().now_ns() - deadline_ns, threading.current_thread()))
        if len(ticks) >= 10:
            enough.set()

    cores = tuple(sorted(os.sched_getaffinity(0)))
    thread = TickThread(0.005, callback, realtime=RealtimeSettings(cpus=cores))
    request.addfinalizer(thread.stop)  # or a failure would keep the process alive
    assert thread.stop()
    for _ in range(2):
        ticks.clear()
        enough.clear()
        thread.start()
        assert [item.name for item in thread.realtime_report.items] == ['cpus']
        with pytest.raises(RuntimeError, match='expected a stopped thread'):
            thread.start()
        assert enough.wait(JOIN_S)
        assert thread.stop(JOIN_S)
        count = len(ticks)
        assert not thread.running
        assert thread.num_ticks == count
    assert all(lateness_ns >= 0 for _, lateness_ns, _ in ticks)
    assert all(by.name == 'oxygen_tick' and not by.daemon for _, _, by in ticks)


def test_stop_does_not_wait_for_a_distant_deadline():
    thread = TickThread(60.0, lambda deadline_ns, tick: None)
    thread.start(SteadyClock().now_ns() + 3600 * 1000 * MS)
    assert thread.stop(JOIN_S)
    assert thread.num_ticks == 0


@pytest.mark.parametrize('period_s', [0.0, -0.02, float('nan'), 20_000_000])
def test_a_period_out_of_range_is_refused(period_s):
    with pytest.raises(ValueError, match='period_s: expected above 0 and at most 60'):
        TickThread(period_s, lambda deadline_ns, tick: None)
