# SPDX-License-Identifier: Apache-2.0
"""Real-time settings are in force, or refused with the way to permit them; they never raise."""

import gc
import os
import sys
import threading

import pytest

from oxygen_ros.control import (
    apply_to_process,
    apply_to_thread,
    process_memory,
    RealtimeSettings,
    release_process,
    thread_priority,
)


@pytest.fixture(autouse=True)
def process_settings():
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)
    gc.unfreeze()
    gc.enable()


def applied(apply=apply_to_process, **settings):
    """Apply in a thread of its own, so that scheduler and cores of this one stay."""
    reports = []
    thread = threading.Thread(target=lambda: reports.append(apply(RealtimeSettings(**settings))))
    thread.start()
    thread.join()
    return reports[0]


def refuse(*_):
    raise PermissionError(1, 'Operation not permitted')


def test_by_default_the_interpreter_switches_quickly_and_the_collector_is_frozen():
    report = applied()
    assert [item.name for item in report.items] == ['switch_interval_s', 'keep_heap', 'freeze_gc']
    assert not report.refused
    assert sys.getswitchinterval() == pytest.approx(0.0005)
    assert gc.get_freeze_count() > 0


def test_a_refused_priority_names_the_way_to_permit_it(monkeypatch):
    monkeypatch.setattr(os, 'sched_setscheduler', refuse, raising=False)
    (item,) = applied(apply_to_thread, fifo_priority=60).refused
    assert item.name == 'fifo_priority'
    assert 'Operation not permitted' in item.cause
    for way in ('limits.conf', 'LimitRTPRIO=60', '--cap-add=SYS_NICE'):
        assert way in item.remedy
    assert str(item).startswith('fifo_priority 60: refused (')


def test_a_priority_reaches_the_scheduler_of_the_calling_thread(monkeypatch):
    calls = []
    monkeypatch.setattr(os, 'sched_setscheduler', lambda *call: calls.append(call))
    report = applied(apply_to_thread, fifo_priority=60)
    assert calls == [(0, os.SCHED_FIFO, os.sched_param(60))]
    assert str(report.items[0]) == 'fifo_priority 60: in force'


def test_cores_that_are_there_are_taken_and_others_refused():
    core = min(os.sched_getaffinity(0))
    assert not applied(apply_to_thread, cpus=(core,)).refused
    (item,) = applied(apply_to_thread, cpus=(100_000,)).refused
    assert 'name cores' in item.remedy


def test_a_core_that_the_kernel_leaves_out_is_reported(monkeypatch):
    monkeypatch.setattr(os, 'sched_setaffinity', lambda *_: None)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: {0})
    (item,) = applied(apply_to_thread, cpus=(0, 1)).refused
    assert item.cause == 'the kernel allows only [0]'


class FakeLibrary:
    def __init__(self, result):
        self.result = result

    def mlockall(self, flags):
        assert flags == 3
        return self.result


@pytest.mark.parametrize('result', [0, -1])
def test_memory_locked_or_not_is_reported(monkeypatch, result):
    monkeypatch.setattr(process_memory.ctypes, 'CDLL', lambda *_, **__: FakeLibrary(result))
    report = applied(lock_memory=True, keep_heap=False, freeze_gc=False)
    assert bool(report.refused) == bool(result)
    assert all('LimitMEMLOCK' in item.remedy for item in report.refused)


def test_an_allocator_that_cannot_keep_memory_is_reported(monkeypatch):
    monkeypatch.setattr(process_memory.ctypes, 'CDLL', lambda *_: object())
    (item,) = applied(freeze_gc=False).refused
    assert item.name == 'keep_heap' and 'it needs glibc' in item.remedy


class Scheduler:
    """Three threads: an ordinary one, one that has ended since it was listed, a real-time one."""

    def __init__(self, monkeypatch):
        self.policies = {11: (os.SCHED_OTHER, 0), 13: (os.SCHED_FIFO, 20)}
        monkeypatch.setattr(thread_priority, '_threads', lambda: [11, 12, 13])
        for name in ('sched_getscheduler', 'sched_getparam', 'sched_setscheduler'):
            monkeypatch.setattr(os, name, getattr(self, name))

    def _of(self, thread):
        if thread not in self.policies:
            raise ProcessLookupError(3, 'No such process')
        return self.policies[thread]

    def sched_getscheduler(self, thread):
        return self._of(thread)[0]

    def sched_getparam(self, thread):
        return os.sched_param(self._of(thread)[1])

    def sched_setscheduler(self, thread, policy, parameter):
        self._of(thread)
        self.policies[thread] = policy, parameter.sched_priority


def test_ordinary_threads_of_the_process_are_raised_and_lowered_again(monkeypatch):
    scheduler = Scheduler(monkeypatch)
    settings = RealtimeSettings(process_priority=2, fifo_priority=20, freeze_gc=False)
    assert not apply_to_process(settings).refused
    assert scheduler.policies == {11: (os.SCHED_RR, 2), 13: (os.SCHED_FIFO, 20)}
    release_process(settings)
    assert scheduler.policies == {11: (os.SCHED_OTHER, 0), 13: (os.SCHED_FIFO, 20)}


def test_a_refused_priority_of_the_process_names_the_way_to_permit_it(monkeypatch):
    Scheduler(monkeypatch)
    monkeypatch.setattr(os, 'sched_setscheduler', refuse)
    (item,) = applied(process_priority=2, fifo_priority=20, freeze_gc=False).refused
    assert item.name == 'process_priority' and 'LimitRTPRIO=2' in item.remedy


def test_the_collector_can_be_turned_off():
    assert not applied(disable_gc=True).refused
    assert not gc.isenabled()


@pytest.mark.parametrize(
    'settings, message',
    [
        ({'switch_interval_s': 0.0}, 'realtime.switch_interval_s: expected 1e-05 to 1, got 0'),
        ({'fifo_priority': 100}, 'fifo_priority: expected 0 to 99, got 100'),
        (
            {'process_priority': 20, 'fifo_priority': 20},
            r'process_priority: expected 0, or below realtime.fifo_priority \(20\), got 20',
        ),
        ({'process_priority': 1}, 'process_priority: expected 0, or below realtime.fifo_priority'),
        ({'cpus': (-1,)}, 'cpus: expected numbers of cores'),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        RealtimeSettings(**settings)
