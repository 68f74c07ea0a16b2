# SPDX-License-Identifier: Apache-2.0
"""What the monitor shows: a window on the history that can be paused."""

from __future__ import annotations

from collections.abc import Callable
import time

from .history import Feed, LatencyHistory, Span

WINDOWS_S = (10.0, 30.0, 60.0, 300.0, 600.0)
DEFAULT_WINDOW_S = 60.0


class MonitorModel:
    """State of one monitor, without Qt; belongs to the thread that draws.

    Paused, reports are still taken in, and the view stays where it was.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.history = LatencyHistory(clock=clock)
        self.window_s = DEFAULT_WINDOW_S
        self._paused_at_s: float | None = None

    @property
    def paused(self) -> bool:
        """Whether the view stands still."""
        return self._paused_at_s is not None

    def pause(self, paused: bool) -> None:
        """Stop the view where it is, or let it follow again."""
        if paused != self.paused:
            self._paused_at_s = self.history.clock() if paused else None

    def clear(self) -> None:
        """Forget all reports."""
        self.history.clear()

    def view(self) -> Span:
        """Return the reports to show."""
        return self.history.span(self.window_s, self._paused_at_s)

    def status(self) -> str:
        """Return one line on whether reports come."""
        feed = self.history.feed()
        if feed is Feed.WAITING:
            return 'waiting for the first report'
        if feed is Feed.STALE:
            return f'stale: no report for {self.history.silence_s():.0f} s'
        times_s = self.history.span(2.0).times_s
        line = 'live'
        if len(times_s) > 1:
            line += f', {(len(times_s) - 1) / (times_s[-1] - times_s[0]):.0f} reports/s'
        return f'paused ({line})' if self.paused else line
