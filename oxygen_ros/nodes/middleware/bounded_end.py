# SPDX-License-Identifier: Apache-2.0
"""An end that comes, whatever the middleware's destructors are stuck in.

Upstream: eProsima/Fast-DDS issue 6513 (open). Seen with Fast DDS 3.2.3. It may go with a release
whose `DomainParticipantImpl::set_listener` waits for a running callback without holding its lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import ctypes
import sys

END_TIMEOUT_S = 4.0  # of a node and its middleware; `ros2 launch` goes from SIGINT to SIGTERM in 5
_CLOCK_MONOTONIC = 1
_SIGEV_THREAD = 2  # <bits/sigevent-consts.h>: call a function in a thread of its own


class _Sigevent(ctypes.Structure):
    """`struct sigevent` of Linux, as its 64-bit C libraries have it."""

    _fields_ = [
        ('value', ctypes.c_uint64),
        ('signo', ctypes.c_int),
        ('notify', ctypes.c_int),
        ('function', ctypes.c_void_p),
        ('attributes', ctypes.c_void_p),
        ('padding', ctypes.c_char * 32),
    ]


class _Itimerspec(ctypes.Structure):
    """`struct itimerspec`: period and first expiry, each in seconds and nanoseconds."""

    _fields_ = [
        ('period_s', ctypes.c_long),
        ('period_ns', ctypes.c_long),
        ('first_s', ctypes.c_long),
        ('first_ns', ctypes.c_long),
    ]


@contextmanager
def end_within(timeout_s: float, status: int) -> Iterator[None]:
    """End the process with a status if what is done in the block takes longer.

    Fast DDS can lock itself up when a participant is destroyed in the moment in which another's
    end is heard of: its `set_listener` spins for ever with the lock that the running callback
    needs. It holds the interpreter's lock as well, so no thread of Python's could help: a timer of
    the system calls `_exit`.

    :param timeout_s: how long the block may take.
    :param status: of the process that is ended.
    :raises OSError: the system has no timer left.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    libc = ctypes.CDLL(None, use_errno=True)
    event = _Sigevent(
        value=status, notify=_SIGEV_THREAD, function=ctypes.cast(libc._exit, ctypes.c_void_p).value
    )
    timer = ctypes.c_void_p()
    seconds, rest_s = divmod(timeout_s, 1.0)
    setting = _Itimerspec(first_s=int(seconds), first_ns=int(rest_s * 1e9))
    _check(libc.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)))
    try:
        _check(libc.timer_settime(timer, 0, ctypes.byref(setting), None))
        yield
    finally:
        libc.timer_delete(timer)


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), 'expected a timer of the system, got none')
