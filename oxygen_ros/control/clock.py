# SPDX-License-Identifier: Apache-2.0
"""Steady clocks: the machine's own, and one that a test or a replay moves by hand."""

from __future__ import annotations

import time
from typing import Protocol

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


class Clock(Protocol):
    """A clock that never runs backward."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since an arbitrary but fixed origin."""
        ...


class SteadyClock:
    """The machine's monotonic clock, the same for all of its processes. Any thread may read it."""

    def now_ns(self) -> int:
        """Return `time.monotonic_ns()`."""
        return time.monotonic_ns()


class VirtualClock:
    """A clock that stands still until it is moved; for tests and deterministic replay."""

    def __init__(self, now_ns: int = 0) -> None:
        """Start the clock.

        :param now_ns: its first reading, in nanoseconds.
        """
        self._now_ns = now_ns

    def now_ns(self) -> int:
        """Return the time the clock was last moved to."""
        return self._now_ns

    def advance(self, duration_ns: int) -> int:
        """Move forward by a duration.

        :param duration_ns: how far, in nanoseconds, at least 0.
        :return: the new time.
        :raises ValueError: the duration is negative.
        """
        if duration_ns < 0:
            raise ValueError(f'duration_ns: expected at least 0, got {duration_ns}')
        self._now_ns += duration_ns
        return self._now_ns

    def set(self, now_ns: int) -> None:
        """Move to a time that is not before the present one.

        :param now_ns: the new time, in nanoseconds.
        :raises ValueError: it lies in the past.
        """
        if now_ns < self._now_ns:
            raise ValueError(f'now_ns: expected at least {self._now_ns}, got {now_ns}')
        self._now_ns = now_ns
