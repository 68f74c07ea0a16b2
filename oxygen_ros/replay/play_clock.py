# SPDX-License-Identifier: Apache-2.0
"""The pace at which a recording is played: its rate, pauses, and the end of playing."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
import time


class PlayClock:
    """A position in recorded time that advances at a rate, or stands still. Any thread.

    It begins at 0 and never goes back; it runs on through all loops.

    :param rate: seconds of the recording that pass in a second.
    :param now_ns: a steady clock.
    """

    def __init__(self, rate: float, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._rate = rate
        self._now_ns = now_ns
        self._changed = Condition()
        self._anchor_ns = now_ns()  # at this time ...
        self._position_ns = 0  # ... it was here
        self._is_paused = self._is_stopped = False

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        return self._is_paused

    def position_ns(self) -> int:
        """Return how far it is."""
        with self._changed:
            return self._position()

    def pause(self, is_paused: bool) -> int:
        """Stand still, or go on; return how long it has stood still (ns), 0 where it did not."""
        with self._changed:
            stood_ns = self._now_ns() - self._anchor_ns if self._is_paused else 0
            self._position_ns = self._position()
            self._anchor_ns = self._now_ns()
            self._is_paused = is_paused
            self._changed.notify_all()
            return stood_ns

    def stop(self) -> None:
        """End every wait."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def wait_until(self, position_ns: int) -> bool:
        """Wait until it is there; return False when it was stopped."""
        with self._changed:
            while not self._is_stopped:
                left_s = (position_ns - self._position()) * 1e-9 / self._rate
                if self._is_paused:
                    self._changed.wait()
                elif left_s <= 0.0:
                    return True
                else:
                    self._changed.wait(left_s)
            return False

    def _position(self) -> int:
        if self._is_paused:
            return self._position_ns
        return self._position_ns + round((self._now_ns() - self._anchor_ns) * self._rate)
