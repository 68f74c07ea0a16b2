# SPDX-License-Identifier: Apache-2.0
"""What happens beside the engine while virtual time passes, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..engine.clock import VirtualWorkClock

NEVER_NS = 1 << 62


class VirtualClock(VirtualWorkClock):
    """Virtual time that lets the world catch up whenever it passes; steady time begins at 0.

    It is the engine's clock and the robot's: while something of the world happens, the robot's
    time is that of the event, for the engine may be further on already.

    :param offset_ns: ROS time minus steady time.
    :param on_time: called with the new time (ns).
    """

    def __init__(self, offset_ns: int, on_time: Callable[[int], None]) -> None:
        super().__init__()
        self._offset_ns = offset_ns
        self._on_time = on_time
        self.event_ns: int | None = None  # of what happens in the world now

    def now_ns(self) -> int:
        """Return the time on the steady clock."""
        return super().now_ns() if self.event_ns is None else self.event_ns

    def offset_ns(self) -> int:
        """Return ROS time minus steady time."""
        return self._offset_ns

    def move_ros_time(self, offset_ns: int) -> None:
        """Let ROS time jump; the steady clock goes on."""
        self._offset_ns = offset_ns

    def charge(self, cost_ns: int) -> None:
        """Account for finished work."""
        super().charge(cost_ns)
        self._on_time(super().now_ns())

    def advance_to(self, time_ns: int) -> None:
        """Let idle time pass."""
        super().advance_to(time_ns)
        self._on_time(super().now_ns())


class Event(NamedTuple):
    """Something that happens once."""

    time_ns: int  # steady; before 0: at 0
    happen: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Periodic:
    """Something that happens again and again."""

    period_ns: int  # 0: never
    happen: Callable[[int, int], None]  # takes its number, from 0, and its time


class VirtualWorld:
    """Events, requests and ticks at their times.

    At equal times events come first and ticks last, so that a tick sees all that was there at its
    deadline. Nothing happens after the end.

    :param events: in order of time; may wait for what is still to come.
    :param end_ns: None: the time of the last event.
    :param at: more events, after those of the same time.
    :param periodic: what happens in turn, in the order in which it does at equal times; the first
        time a period from now.
    """

    def __init__(
        self,
        clock: VirtualClock,
        events: Iterator[Event],
        end_ns: int | None,
        at: Sequence[Event],
        periodic: Sequence[Periodic],
    ) -> None:
        now_ns = clock.now_ns()
        self.end_ns = NEVER_NS - 1 if end_ns is None else end_ns
        self.num_periodic = 0  # times that the last of `periodic` has happened
        self._clock = clock
        self._ends_with_events = end_ns is None
        self._events = events
        self._entries = [
            *(Periodic(NEVER_NS, lambda *_, event=event: event.happen()) for event in at),
            *periodic,
        ]
        self._numbers = [0] * len(self._entries)
        self._times = [
            *(event.time_ns for event in at),
            *(now_ns + entry.period_ns if entry.period_ns else NEVER_NS for entry in periodic),
        ]
        self._event: Event | None = Event(now_ns, lambda: None)
        self._event_ns = now_ns
        self._is_busy = False

    @property
    def next_ns(self) -> int:
        """When something happens next; after the end: never."""
        next_ns = min(self._event_ns, *self._times)
        return next_ns if next_ns <= self.end_ns else NEVER_NS

    def pass_to(self, now_ns: int) -> None:
        """Let everything up to a time happen."""
        if self._is_busy:  # what happens takes no time
            return
        self._is_busy = True
        try:
            while (next_ns := self.next_ns) <= now_ns:
                self._clock.event_ns = next_ns
                if self._event_ns == next_ns:
                    assert self._event is not None
                    self._event.happen()
                    self._read(next_ns)
                    continue
                index = self._times.index(next_ns)
                entry = self._entries[index]
                self._times[index] += entry.period_ns
                number, self._numbers[index] = self._numbers[index], self._numbers[index] + 1
                self.num_periodic = self._numbers[-1]
                entry.happen(number, next_ns)
        finally:
            self._is_busy = False
            self._clock.event_ns = None

    def _read(self, now_ns: int) -> None:
        self._event = next(self._events, None)
        if self._event is not None:
            self._event_ns = max(now_ns, self._event.time_ns)
            return
        self._event_ns = NEVER_NS
        if self._ends_with_events:
            self.end_ns = now_ns
