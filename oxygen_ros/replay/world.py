# SPDX-License-Identifier: Apache-2.0
"""What happens beside the engine while a replay's time passes, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..engine.clock import VirtualWorkClock
from .storage import BagMessage

NEVER_NS = 1 << 62


class ReplayClock(VirtualWorkClock):
    """Virtual time that lets the world catch up whenever it passes.

    :param on_time: called with the new time, ns since the start of the replay.
    """

    def __init__(self, on_time: Callable[[int], None]) -> None:
        super().__init__()
        self._on_time = on_time

    def charge(self, cost_ns: int) -> None:
        """Account for finished work."""
        super().charge(cost_ns)
        self._on_time(self.now_ns())

    def advance_to(self, time_ns: int) -> None:
        """Let idle time pass."""
        super().advance_to(time_ns)
        self._on_time(self.now_ns())


@dataclass(frozen=True, slots=True)
class Periodic:
    """Something that happens again and again."""

    first_ns: int
    period_ns: int  # 0: never
    happen: Callable[[int, int], None]  # takes its number, from 0, and its time


class World:
    """Messages, requests and ticks at their times.

    At equal times messages come first and ticks last, so that a tick sees all that was there at
    its deadline. Nothing happens after the end.

    :param messages: in order of time of recording.
    :param start_ns: ROS time at which the clock stands at 0.
    :param periodic: what happens in turn, in the order in which it does at equal times.
    """

    def __init__(
        self,
        messages: Iterator[BagMessage],
        start_ns: int,
        end_ns: int,
        on_message: Callable[[BagMessage], None],
        periodic: list[Periodic],
    ) -> None:
        self.end_ns = end_ns
        self._messages = messages
        self._start_ns = start_ns
        self._on_message = on_message
        self._periodic = periodic
        self._numbers = [0] * len(periodic)
        self._times = [entry.first_ns if entry.period_ns else NEVER_NS for entry in periodic]
        self._message: BagMessage | None = None
        self._message_ns = 0
        self._is_busy = False
        self._read()

    @property
    def next_ns(self) -> int:
        """When something happens next; after the end: never."""
        next_ns = min(self._message_ns, *self._times)
        return next_ns if next_ns <= self.end_ns else NEVER_NS

    def pass_to(self, now_ns: int) -> None:
        """Let everything up to a time happen."""
        if self._is_busy:  # what happens takes no time
            return
        self._is_busy = True
        try:
            while (next_ns := self.next_ns) <= now_ns:
                if self._message_ns == next_ns:
                    assert self._message is not None
                    self._on_message(self._message)
                    self._read()
                    continue
                index = self._times.index(next_ns)
                entry = self._periodic[index]
                self._times[index] += entry.period_ns
                number, self._numbers[index] = self._numbers[index], self._numbers[index] + 1
                entry.happen(number, next_ns)
        finally:
            self._is_busy = False

    def _read(self) -> None:
        self._message = next(self._messages, None)
        self._message_ns = (
            NEVER_NS if self._message is None else max(0, self._message.stamp_ns - self._start_ns)
        )
