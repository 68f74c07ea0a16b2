# SPDX-License-Identifier: Apache-2.0
"""Priorities and cores of threads, asked for and reported."""

from __future__ import annotations

import contextlib
import os

from .realtime_report import RealtimeItem


def raise_process(priority: int) -> RealtimeItem:
    """Put the ordinary threads of this process, and those they start, under SCHED_RR."""
    try:
        for thread in _threads():
            try:
                if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                    os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(priority))
            except ProcessLookupError:
                continue  # it has ended meanwhile
    except (AttributeError, OSError) as error:
        return _refused_priority('process_priority', priority, error)
    return RealtimeItem('process_priority', str(priority), True)


def lower_process(priority: int) -> None:
    """Give the threads that `raise_process` raised their ordinary scheduler back."""
    for thread in _threads():
        with contextlib.suppress(OSError):
            if (
                os.sched_getscheduler(thread) == os.SCHED_RR
                and os.sched_getparam(thread).sched_priority == priority
            ):
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def use_fifo(priority: int) -> RealtimeItem:
    """Put the calling thread under SCHED_FIFO."""
    try:
        # For Linux 0 means the calling thread; the other threads keep their scheduler.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (AttributeError, OSError) as error:
        return _refused_priority('fifo_priority', priority, error)
    return RealtimeItem('fifo_priority', str(priority), True)


def use_cpus(cpus: tuple[int, ...]) -> RealtimeItem:
    """Let the calling thread run on these cores only."""
    value = ','.join(map(str, cpus))
    try:
        os.sched_setaffinity(0, cpus)
        given = os.sched_getaffinity(0)
    except (AttributeError, OSError) as error:
        return RealtimeItem(
            'cpus',
            value,
            False,
            str(error),
            f'this machine has cores 0 to {(os.cpu_count() or 1) - 1}; name cores that the '
            f'process may use (taskset -p, cpuset of the container)',
        )
    if given != set(cpus):
        # The kernel drops cores that it does not offer, without an error.
        return RealtimeItem(
            'cpus',
            value,
            False,
            f'the kernel allows only {sorted(given)}',
            'name cores that the process may use (taskset -p, cpuset of the container)',
        )
    return RealtimeItem('cpus', value, True)


def _refused_priority(name: str, priority: int, error: Exception) -> RealtimeItem:
    return RealtimeItem(
        name,
        str(priority),
        False,
        str(error),
        f'permit it with "@realtime - rtprio {priority}" in /etc/security/limits.conf, '
        f'LimitRTPRIO={priority} in a systemd unit, or --cap-add=SYS_NICE for a container',
    )


def _threads() -> list[int]:
    """Return the kernel's numbers of the threads of this process."""
    return [int(name) for name in os.listdir('/proc/self/task')]
