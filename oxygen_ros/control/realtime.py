"""Real-time settings of the calling thread and its process, each reported as in force or not."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
import gc
import os
import sys

_MCL_CURRENT = 1
_MCL_FUTURE = 2


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """
    What to ask of the operating system and the interpreter.

    :raises ValueError: names the field, what was expected and what came.
    """

    switch_interval_s: float = 0.0005  # how long another thread may keep the interpreter; process
    fifo_priority: int = 0  # SCHED_FIFO, 1 to 99; 0: leave the scheduler alone; thread
    cpus: tuple[int, ...] = ()  # cores the thread may run on; empty: all; thread
    lock_memory: bool = False  # no page of the process is swapped out; process
    freeze_gc: bool = True  # what exists now is never scanned again; process
    disable_gc: bool = False  # no cyclic collection at all; process

    def __post_init__(self) -> None:
        if not 0.0 < self.switch_interval_s <= 1.0:
            raise ValueError(
                f'switch_interval_s: expected above 0 and at most 1, '
                f'got {self.switch_interval_s}')
        if not 0 <= self.fifo_priority <= 99:
            raise ValueError(f'fifo_priority: expected 0 to 99, got {self.fifo_priority}')
        if any(cpu < 0 for cpu in self.cpus):
            raise ValueError(f'cpus: expected numbers of cores, got {self.cpus}')


@dataclass(frozen=True, slots=True)
class RealtimeItem:
    """One setting after it was asked for."""

    name: str
    value: str  # what was asked for
    in_force: bool
    cause: str = ''  # why it was refused
    remedy: str = ''  # how to permit it

    def __str__(self) -> str:
        """Return one line for a log."""
        if self.in_force:
            return f'{self.name} {self.value}: in force'
        return f'{self.name} {self.value}: refused ({self.cause}); {self.remedy}'


@dataclass(frozen=True, slots=True)
class RealtimeReport:
    """All settings that were asked for."""

    items: tuple[RealtimeItem, ...] = ()

    @property
    def refused(self) -> tuple[RealtimeItem, ...]:
        """Return the settings that are not in force."""
        return tuple(item for item in self.items if not item.in_force)


def apply_realtime(settings: RealtimeSettings) -> RealtimeReport:
    """
    Ask for every setting; none of them is needed, so a refusal is reported and not raised.

    Call it from the thread that is to be real-time, once the process has loaded what it needs.

    :param settings: what to ask for
    :returns: what came of it, in the order of the fields; what was not asked for is left out
    """
    sys.setswitchinterval(settings.switch_interval_s)
    items = [RealtimeItem('switch_interval_s', str(settings.switch_interval_s), True)]
    if settings.fifo_priority:
        items.append(_apply_fifo(settings.fifo_priority))
    if settings.cpus:
        items.append(_apply_cpus(settings.cpus))
    if settings.lock_memory:
        items.append(_lock_memory())
    if settings.freeze_gc:
        gc.collect()
        gc.freeze()
        items.append(RealtimeItem('freeze_gc', 'true', True))
    if settings.disable_gc:
        gc.disable()
        items.append(RealtimeItem('disable_gc', 'true', True))
    return RealtimeReport(tuple(items))


def _apply_fifo(priority: int) -> RealtimeItem:
    try:
        # For Linux 0 means the calling thread; the other threads keep their scheduler.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (AttributeError, OSError) as error:
        return RealtimeItem(
            'fifo_priority', str(priority), False, str(error),
            f'permit it with "@realtime - rtprio {priority}" in /etc/security/limits.conf, '
            f'LimitRTPRIO={priority} in a systemd unit, or --cap-add=SYS_NICE for a container')
    return RealtimeItem('fifo_priority', str(priority), True)


def _apply_cpus(cpus: tuple[int, ...]) -> RealtimeItem:
    value = ','.join(map(str, cpus))
    try:
        os.sched_setaffinity(0, cpus)
        given = os.sched_getaffinity(0)
    except (AttributeError, OSError) as error:
        return RealtimeItem(
            'cpus', value, False, str(error),
            f'this machine has cores 0 to {(os.cpu_count() or 1) - 1}; name cores that the '
            f'process may use (taskset -p, cpuset of the container)')
    if given != set(cpus):
        # The kernel drops cores that it does not offer, without an error.
        return RealtimeItem(
            'cpus', value, False, f'the kernel allows only {sorted(given)}',
            'name cores that the process may use (taskset -p, cpuset of the container)')
    return RealtimeItem('cpus', value, True)


def _lock_memory() -> RealtimeItem:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    except (AttributeError, OSError) as error:
        return RealtimeItem(
            'lock_memory', 'true', False, str(error),
            'permit it with "@realtime - memlock unlimited" in /etc/security/limits.conf, '
            'LimitMEMLOCK=infinity in a systemd unit, or --ulimit memlock=-1 for a container')
    return RealtimeItem('lock_memory', 'true', True)
