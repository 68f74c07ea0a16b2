"""Real-time settings are in force, or refused with the way to permit them; they never raise."""
import gc
import os
import sys
import threading

import pytest

from oxygen_ros.control import apply_realtime, realtime, RealtimeSettings


@pytest.fixture(autouse=True)
def process_settings():
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)
    gc.unfreeze()
    gc.enable()


def applied(**settings):
    """Apply in a thread of its own, so that scheduler and cores of this one stay."""
    reports = []
    thread = threading.Thread(
        target=lambda: reports.append(apply_realtime(RealtimeSettings(**settings))))
    thread.start()
    thread.join()
    return reports[0]


def refuse(*_):
    raise PermissionError(1, 'Operation not permitted')


def test_by_default_the_interpreter_switches_quickly_and_the_collector_is_frozen():
    report = applied()
    assert [item.name for item in report.items] == ['switch_interval_s', 'freeze_gc']
    assert not report.refused
    assert sys.getswitchinterval() == pytest.approx(0.0005)
    assert gc.get_freeze_count() > 0


def test_a_refused_priority_names_the_way_to_permit_it(monkeypatch):
    monkeypatch.setattr(os, 'sched_setscheduler', refuse, raising=False)
    (item,) = applied(fifo_priority=60).refused
    assert item.name == 'fifo_priority'
    assert 'Operation not permitted' in item.cause
    for way in ('limits.conf', 'LimitRTPRIO=60', '--cap-add=SYS_NICE'):
        assert way in item.remedy
    assert str(item).startswith('fifo_priority 60: refused (')


def test_a_priority_reaches_the_scheduler_of_the_calling_thread(monkeypatch):
    calls = []
    monkeypatch.setattr(os, 'sched_setscheduler', lambda *call: calls.append(call))
    report = applied(fifo_priority=60)
    assert calls == [(0, os.SCHED_FIFO, os.sched_param(60))]
    assert str(report.items[1]) == 'fifo_priority 60: in force'


def test_cores_that_are_there_are_taken_and_others_refused():
    core = min(os.sched_getaffinity(0))
    assert not applied(cpus=(core,)).refused
    (item,) = applied(cpus=(100_000,)).refused
    assert 'name cores' in item.remedy


def test_a_core_that_the_kernel_leaves_out_is_reported(monkeypatch):
    monkeypatch.setattr(os, 'sched_setaffinity', lambda *_: None)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: {0})
    (item,) = applied(cpus=(0, 1)).refused
    assert item.cause == 'the kernel allows only [0]'


class FakeLibrary:
    def __init__(self, result):
        self.result = result

    def mlockall(self, flags):
        assert flags == 3
        return self.result


@pytest.mark.parametrize('result', [0, -1])
def test_memory_locked_or_not_is_reported(monkeypatch, result):
    monkeypatch.setattr(realtime.ctypes, 'CDLL', lambda *_, **__: FakeLibrary(result))
    report = applied(lock_memory=True, freeze_gc=False)
    assert bool(report.refused) == bool(result)
    assert all('LimitMEMLOCK' in item.remedy for item in report.refused)


def test_the_collector_can_be_turned_off():
    assert not applied(disable_gc=True).refused
    assert not gc.isenabled()


@pytest.mark.parametrize('settings, message', [
    ({'switch_interval_s': 0.0}, 'switch_interval_s: expected above 0'),
    ({'fifo_priority': 100}, 'fifo_priority: expected 0 to 99, got 100'),
    ({'cpus': (-1,)}, 'cpus: expected numbers of cores'),
])
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        RealtimeSettings(**settings)
