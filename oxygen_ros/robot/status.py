# SPDX-License-Identifier: Apache-2.0
"""Findings and figures of one part of a robot, and how counts become both."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

_RECENT_NS = 10_000_000_000


class Level(IntEnum):
    """How bad it is; the numbers are those of diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


class Finding(NamedTuple):
    """One thing that is wrong."""

    level: Level
    cause: str


Figures = list[tuple[str, object]]
"""Key with its unit, and value."""


class Status(NamedTuple):
    """One part of a robot."""

    findings: list[Finding]
    figures: Figures


class Recent:
    """Whether a count has grown lately: a finding about an event ends 10 s after the last one.

    :param count: returns it; it may start again from zero.
    """

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._seen = 0
        self._grew_ns: int | None = None

    def read(self, now_ns: int) -> bool:
        """Return whether it has grown within the last 10 seconds of reading."""
        count = self._count()
        if count > self._seen:
            self._grew_ns = now_ns
        self._seen = count
        return self._grew_ns is not None and now_ns - self._grew_ns <= _RECENT_NS


class RateMeter:
    """Turns a growing count into a rate between two readings."""

    def __init__(self, now_ns: int) -> None:
        self._time_ns = now_ns
        self._count = 0

    def read(self, count: int, now_ns: int) -> float:
        """Return counts per second since the last reading."""
        rate = (count - self._count) / max((now_ns - self._time_ns) * 1e-9, 1e-3)
        self._time_ns, self._count = now_ns, count
        return max(rate, 0.0)
