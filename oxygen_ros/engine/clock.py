# SPDX-License-Identifier: Apache-2.0
"""The clock that the engine is given: it has none of its own."""

from __future__ import annotations

from typing import Protocol


class WorkClock(Protocol):
    """Time in ns, and a door through which virtual time learns what work costs."""

    def now_ns(self) -> int:
        """Return the time on the steady clock."""
        ...

    def charge(self, cost_ns: int) -> None:
        """Account for finished work; a real clock ignores it, a virtual one advances."""
        ...


class VirtualWorkClock:
    """Time that passes by what the cost table says, for schedules that repeat exactly."""

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        return self._now_ns

    def charge(self, cost_ns: int) -> None:
        self._now_ns += cost_ns

    def advance_to(self, time_ns: int) -> None:
        """Let idle time pass up to `time_ns`; time never goes back."""
        self._now_ns = max(self._now_ns, time_ns)
