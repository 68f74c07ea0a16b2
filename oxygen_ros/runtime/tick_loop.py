# SPDX-License-Identifier: Apache-2.0
"""The tick in real time: its thread, and what it asks of the operating system."""

from __future__ import annotations

from ..control.realtime import apply_to_process, RealtimeSettings, release_process
from ..control.realtime_report import RealtimeReport
from ..robot.actuation import Actuation
from .tick_thread import TickThread


class TickLoop:
    """The same in the engine's process and in one of its own; belongs to one thread.

    :param realtime: of the process and of the tick's thread; None: nothing is asked for.
    """

    def __init__(self, actuation: Actuation, realtime: RealtimeSettings | None) -> None:
        self.realtime_report = RealtimeReport()
        self._actuation = actuation
        self._realtime = realtime
        self._thread: TickThread | None = None

    @property
    def thread(self) -> TickThread | None:
        """The tick's thread while it runs."""
        return self._thread

    def prepare(self) -> None:
        """Apply what concerns the whole process; before the first deadline, since it is slow."""
        if self._realtime is not None:
            self.realtime_report = apply_to_process(self._realtime)

    def start(self, first_ns: int) -> None:
        """Start the thread.

        :param first_ns: the first deadline on the steady clock.
        """
        config = self._actuation.tick.config
        ahead_ns = config.decide_ahead_ns
        self._thread = TickThread(
            config.period_ns * 1e-9,
            self._actuation.send,
            ahead=self._actuation.decide if ahead_ns else None,
            ahead_ns=ahead_ns,
            realtime=self._realtime,
        )
        self._thread.start(first_ns)
        self.realtime_report = RealtimeReport(
            (*self.realtime_report.items, *self._thread.realtime_report.items)
        )

    def stop(self, reason: str, timeout_s: float = 1.0) -> bool:
        """Stop the thread and hold by a last target; nothing happens where none runs.

        :param timeout_s: how long to wait for the present tick.
        :return: False: the thread did not end in time.
        """
        if self._thread is None:
            return True
        thread, self._thread = self._thread, None
        stopped = thread.stop(timeout_s)
        self._actuation.finish(thread.num_ticks + thread.num_overruns, reason)
        return stopped

    def release(self) -> None:
        """Take back what was applied to the whole process, once all is stopped."""
        if self._realtime is not None:
            release_process(self._realtime)
