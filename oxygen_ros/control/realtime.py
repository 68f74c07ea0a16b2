# SPDX-License-Identifier: Apache-2.0
"""Real-time settings of the process and of the tick's thread, each in force or refused."""

from __future__ import annotations

from dataclasses import dataclass
import gc
import sys
from typing import ClassVar

from ..setting import check, parameter, refusal, setting
from .process_memory import keep_heap, lock_memory
from .realtime_report import RealtimeItem, RealtimeReport
from .thread_priority import lower_process, raise_process, use_cpus, use_fifo


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """What to ask of the operating system and the interpreter.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'realtime'

    # Of the process.
    switch_interval_s: float = setting(
        0.0005, 'How long another thread may hold the interpreter lock', 's', low=0.00001, high=1.0
    )
    # Of the tick's thread.
    fifo_priority: int = setting(
        0, 'SCHED_FIFO priority of the tick; 0: unchanged', low=0, high=99
    )
    # Of the process.
    process_priority: int = setting(
        0,
        'SCHED_RR priority of the other threads of the process (below that of the tick), so that '
        'no other program preempts a thread that the tick is waiting for; 0: unchanged',
        low=0,
        high=98,
    )
    # Of the tick's thread.
    cpus: tuple[int, ...] = setting((), 'Cores for the tick; -1: all', low=-1, none=-1)
    # Of the process.
    lock_memory: bool = setting(False, 'Lock the memory of the process (mlockall)')
    keep_heap: bool = setting(
        True, 'Keep freed memory for the next image instead of returning it to the system'
    )
    freeze_gc: bool = setting(
        True, 'Exclude objects that exist at activation from garbage collection until deactivation'
    )
    disable_gc: bool = setting(False, 'Disable cyclic garbage collection while active')

    def __post_init__(self) -> None:
        check(self)
        if self.process_priority > max(0, self.fifo_priority - 1):
            # Or the tick would wait for the rest of its process.
            tick = parameter(RealtimeSettings, 'fifo_priority')
            raise refusal(self, 'process_priority', f'0, or below {tick} ({self.fifo_priority})')
        if -1 in self.cpus:
            raise refusal(self, 'cpus', 'numbers of cores')


def apply_to_process(settings: RealtimeSettings) -> RealtimeReport:
    """Ask for what concerns the whole process, once it has loaded what it needs.

    Nothing is needed, so a refusal is reported and not raised.

    :return: what came of it, in the order of the fields; what was not asked for is left out.
    """
    sys.setswitchinterval(settings.switch_interval_s)
    items = [RealtimeItem('switch_interval_s', str(settings.switch_interval_s), True)]
    if settings.process_priority:
        items.append(raise_process(settings.process_priority))
    if settings.lock_memory:
        items.append(lock_memory())
    if settings.keep_heap:
        items.append(keep_heap())
    if settings.freeze_gc:
        gc.collect()
        gc.freeze()
        items.append(RealtimeItem('freeze_gc', 'true', True))
    if settings.disable_gc:
        gc.disable()
        items.append(RealtimeItem('disable_gc', 'true', True))
    return RealtimeReport(tuple(items))


def apply_to_thread(settings: RealtimeSettings) -> RealtimeReport:
    """Ask for what concerns the calling thread alone; else as `apply_to_process`."""
    items = []
    if settings.fifo_priority:
        items.append(use_fifo(settings.fifo_priority))
    if settings.cpus:
        items.append(use_cpus(settings.cpus))
    return RealtimeReport(tuple(items))


def release_process(settings: RealtimeSettings) -> None:
    """Take back what would outlast the ticks: priorities, and the collector's rest."""
    if settings.process_priority:
        lower_process(settings.process_priority)
    if settings.freeze_gc:
        # Or what is freed from now on, such as a whole KV cache at cleanup, would stay
        gc.unfreeze()
    if settings.disable_gc:
        gc.enable()
