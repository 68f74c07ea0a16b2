# SPDX-License-Identifier: Apache-2.0
"""The engine's thread with an engine that fails when told to."""

import threading
import time

import pytest

from oxygen_ros.robot.faults import EngineHealth
from oxygen_ros.runtime import engine_thread
from oxygen_ros.runtime.engine_thread import EngineThread

TIMEOUT_S = 60.0


class FakeEngine:
    """Runs empty cycles; a cycle, and what follows a fault, can be made to fail."""

    def __init__(self):
        self.action = self
        self.num_cycles = 0
        self.num_stops = 0
        self.works = True
        self.is_sound = True

    def align(self, start_ns):
        pass

    def interrupt(self):
        pass

    def deadline_ns(self, now_ns):
        return now_ns + 1_000_000

    def run_cycle(self, now_ns, deadline_ns):
        self.num_cycles += 1
        time.sleep(0.001)
        if not self.works:
            raise RuntimeError('broken on purpose')
        return 1

    def stop(self):
        self.num_stops += 1

    def check_integrity(self):
        if not self.is_sound:
            raise RuntimeError('a page too many')


@pytest.fixture
def engine():
    return FakeEngine()


@pytest.fixture
def health():
    return EngineHealth()


@pytest.fixture
def thread(engine, health, monkeypatch):
    monkeypatch.setattr(engine_thread, '_RETRY_S', 0.05)
    thread = EngineThread(engine, health, threading.Event(), lambda: None)
    thread.start(time.monotonic_ns())
    wait_for(lambda: engine.num_cycles > 2)
    yield thread
    assert thread.stop(TIMEOUT_S)


def wait_for(condition):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.002)


def test_a_few_faults_are_reported_and_the_engine_is_not_given_up(engine, thread, health):
    engine.works = False
    wait_for(lambda: health.num_faults >= 1)
    engine.works = True
    cycles = engine.num_cycles
    wait_for(lambda: engine.num_cycles > cycles + 3)
    assert health.is_running and not health.is_lost
    assert len(health.reports) == health.num_faults == engine.num_stops
    assert 'broken on purpose' in health.reports[0]


def test_many_faults_in_a_row_are_a_failure_that_ends_with_their_cause(engine, thread, health):
    engine.works = False
    wait_for(lambda: health.failed)
    assert not health.is_running and not health.is_lost
    faults = health.num_faults
    wait_for(lambda: health.num_faults > faults)  # it tries again
    assert health.failed
    engine.works = True
    wait_for(lambda: not health.failed)
    assert health.is_running


def test_an_engine_whose_memory_is_in_disorder_does_not_run_again_until_it_is_started(
    engine, thread, health
):
    engine.is_sound = engine.works = False
    wait_for(lambda: health.is_lost)
    engine.works = True
    wait_for(lambda: not health.is_alive)  # nothing runs it any more
    cycles = engine.num_cycles
    assert health.failed and 'a page too many' in health.reports[-1]
    assert thread.stop(TIMEOUT_S)
    assert engine.num_cycles == cycles
    engine.is_sound = True
    thread.start(time.monotonic_ns())
    wait_for(lambda: engine.num_cycles > cycles)
    assert health.is_running


def test_a_stop_does_not_wait_for_the_next_attempt(engine, thread, health, monkeypatch):
    monkeypatch.setattr(engine_thread, '_RETRY_S', 100 * TIMEOUT_S)
    engine.works = False
    wait_for(lambda: health.failed)
    assert thread.stop(TIMEOUT_S)


def test_a_deadline_that_passes_during_an_empty_cycle_is_not_slept_through(engine, monkeypatch):
    start_ns, period_ns = time.monotonic_ns() + 50_000_000, 600_000_000_000
    cycles = []

    def run_cycle(now_ns, deadline_ns):
        cycles.append(now_ns)
        if now_ns < start_ns:
            time.sleep(0.06)  # past the deadline, with nothing to do
        return 0

    monkeypatch.setattr(engine, 'run_cycle', run_cycle)
    monkeypatch.setattr(
        engine,
        'deadline_ns',
        lambda now_ns: (
            start_ns + max(0, (now_ns - start_ns) // period_ns + 1) * period_ns
            if now_ns >= start_ns
            else start_ns
        ),
    )
    thread = EngineThread(engine, EngineHealth(), threading.Event(), lambda: None)
    thread.start(start_ns)
    try:
        wait_for(lambda: any(now_ns >= start_ns for now_ns in cycles))
    finally:
        thread.stop(TIMEOUT_S)
