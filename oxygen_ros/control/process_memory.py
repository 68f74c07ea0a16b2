# SPDX-License-Identifier: Apache-2.0
"""Memory of the process: kept where it is, asked for and reported."""

from __future__ import annotations

import ctypes
import os

from .realtime_report import RealtimeItem

_MCL_CURRENT = 1
_MCL_FUTURE = 2
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BLOCK_BYTES = 32 << 20  # larger ones, such as weights, still go back to the system
_KEPT_HEAP_BYTES = 64 << 20


def lock_memory() -> RealtimeItem:
    """Keep all pages of the process in memory, those to come too."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    except (AttributeError, OSError) as error:
        return RealtimeItem(
            'lock_memory',
            'true',
            False,
            str(error),
            'permit it with "@realtime - memlock unlimited" in /etc/security/limits.conf, '
            'LimitMEMLOCK=infinity in a systemd unit, or --ulimit memlock=-1 for a container',
        )
    return RealtimeItem('lock_memory', 'true', True)


def keep_heap() -> RealtimeItem:
    """Let the allocator keep large blocks that are freed.

    Or its pages would be mapped anew for every image of a camera.
    """
    try:
        libc = ctypes.CDLL(None)
        if not (
            libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BLOCK_BYTES)
            and libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_HEAP_BYTES)
        ):
            raise OSError('mallopt refused it')
    except (AttributeError, OSError) as error:
        return RealtimeItem(
            'keep_heap',
            'true',
            False,
            str(error),
            'it needs glibc; without it images cost more time',
        )
    return RealtimeItem('keep_heap', 'true', True)
