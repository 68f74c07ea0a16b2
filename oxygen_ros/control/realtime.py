# SPDX-License-Identifier: Apache-2.0
"""Real-time settings of the process and of the tick's thread, each in force or refused."""

from __future__ import annotations

from dataclasses import dataclass
import gc
import sys

from .process_memory import keep_heap, lock_memory
from .realtime_report import RealtimeItem, RealtimeReport
from .thread_priority import lower_process, raise_process, use_cpus, use_fifo


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """
    What to ask of the operating system and the interpreter.

    :raises ValueError: names the field, what was expected and what came.
    """

    # Of the process.
    switch_interval_s: float = 0.0005  # how long another thread may keep the interpreter
    process_priority: int = 0  # SCHED_RR, of all threads but the tick's; 0: leave them alone
    lock_memory: bool = False  # no page is swapped out
    keep_heap: bool = True  # freed memory stays, for the next image
    freeze_gc: bool = True  # what exists now is never scanned again
    disable_gc: bool = False  # no cyclic collection at all
    # Of the tick's thread.
    fifo_priority: int = 0  # SCHED_FIFO, 1 to 99; 0: leave the scheduler alone
    cpus: tuple[int, ...] = ()  # cores it may run on; empty: all

    def __post_init__(self) -> None:
        if not 0.0 < self.switch_interval_s <= 1.0:
            raise ValueError(
                f'switch_interval_s: expected above 0 and at most 1, got {self.switch_interval_s}'
            )
        if not 0 <= self.fifo_priority <= 99:
            raise ValueError(f'fifo_priority: expected 0 to 99, got {self.fifo_priority}')
        if not 0 <= self.process_priority <= max(0, self.fifo_priority - 1):
            # Or the tick would wait for the rest of its process.
            raise ValueError(
                f'process_priority: expected 0, or below fifo_priority ({self.fifo_priority}), '
                f'got {self.process_priority}'
            )
        if any(cpu < 0 for cpu in self.cpus):
            raise ValueError(f'cpus: expected numbers of cores, got {self.cpus}')


def apply_to_process(settings: RealtimeSettings) -> RealtimeReport:
    """
    Ask for what concerns the whole process, once it has loaded what it needs.

    Nothing is needed, so a refusal is reported and not raised.

    :returns: what came of it, in the order of the fields; what was not asked for is left out
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
