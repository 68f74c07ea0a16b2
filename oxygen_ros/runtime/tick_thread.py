# SPDX-License-Identifier: Apache-2.0
"""The tick's own thread: a callback at absolute deadlines on the steady clock."""

from __future__ import annotations

from collections.abc import Callable
import threading
import time

from ..control.cadence import Cadence
from ..control.clock import Clock, NS_PER_S, SteadyClock
from ..control.realtime import apply_to_thread, RealtimeSettings
from ..control.realtime_report import RealtimeReport

TickCallback = Callable[[int, int], None]  # deadline_ns, tick

MAX_PERIOD_S = 60.0

# The last stretch before a deadline is spent awake: it hides the wake-up of an idle core, at under
# 1 % of a core for 50 Hz (measured in doc/realtime.md).
_SPIN_NS = 200_000
_NAP_NS = 100_000_000  # so that stop() is noticed within it, however long the period


class TickThread:
    """Runs a callback once per period until stopped, and another shortly before it.

    Deadlines do not drift; a deadline met more than half a period late is skipped and counted, be
    it that `ahead` was called for it. An exception in a callback, which reports it itself, is
    counted, and the next one comes as ever. Start and stop from one thread; the readings may be
    taken from any.
    """

    def __init__(
        self,
        period_s: float,
        callback: TickCallback,
        clock: Clock | None = None,
        *,
        ahead: TickCallback | None = None,
        ahead_ns: int = 0,
        realtime: RealtimeSettings | None = None,
        name: str = 'oxygen_tick',
        sleep_until_ns: Callable[[int], None] | None = None,
    ) -> None:
        """Prepare the thread; it does not run yet.

        :param period_s: time between two deadlines, in seconds, above 0 to `MAX_PERIOD_S`.
        :param callback: takes the deadline (steady, in nanoseconds) and the tick's number from 0.
        :param clock: steady; the machine's by default.
        :param ahead: called likewise before each deadline, so that what takes a varying time is
            done by then.
        :param ahead_ns: how long before, in nanoseconds.
        :param realtime: of the new thread, asked for before its first tick; None: nothing.
        :param name: of the thread.
        :param sleep_until_ns: how to wait on `clock`; needed with a clock of one's own.
        :raises ValueError: the period is out of range.
        """
        if not 0.0 < period_s <= MAX_PERIOD_S:
            # A period given in nanoseconds by mistake would look like a thread that never ticks.
            raise ValueError(
                f'period_s: expected above 0 and at most {MAX_PERIOD_S}, got {period_s}'
            )
        self.period_ns = round(period_s * NS_PER_S)
        self.name = name
        self.num_ticks = 0
        self.num_overruns = 0
        self.num_errors = 0
        self.realtime_report = RealtimeReport()
        self._callback = callback
        self._ahead = ahead
        self._ahead_ns = ahead_ns
        self._clock: Clock = SteadyClock() if clock is None else clock
        self._realtime = realtime
        self._sleep_until_ns = sleep_until_ns or self._sleep_precisely
        self._doze_until_ns = sleep_until_ns or self._nap_until_ns
        self._stopping = False
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, start_ns: int | None = None) -> None:
        """Start ticking, and return once the real-time settings have been asked for.

        :param start_ns: deadline of tick 0, steady, in nanoseconds; one period from now by
            default.
        :raises RuntimeError: it is running already.
        """
        if self.running:
            raise RuntimeError(f'{self.name}: expected a stopped thread, got a running one')
        self.num_ticks = self.num_overruns = self.num_errors = 0
        self._stopping = False
        self._ready.clear()
        # Not a daemon: a daemon thread is killed in the middle of a tick when the process ends.
        self._thread = threading.Thread(
            target=self._run, args=(start_ns,), name=self.name, daemon=False
        )
        self._thread.start()
        self._ready.wait()

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Stop ticking: no callback begins after this has returned true.

        :param timeout_s: how long to wait for the present tick, in seconds.
        :return: whether the thread has ended; false when called by the callback itself.
        """
        self._stopping = True
        thread = self._thread
        if thread is None:
            return True
        if thread is threading.current_thread():
            return False
        thread.join(timeout_s)
        return not thread.is_alive()

    def _run(self, start_ns: int | None) -> None:
        try:
            if self._realtime is not None:
                self.realtime_report = apply_to_thread(self._realtime)
        finally:
            self._ready.set()
        if start_ns is None:
            start_ns = self._clock.now_ns() + self.period_ns
        cadence = Cadence(self.period_ns, start_ns)
        while not self._stopping:
            if self._ahead is not None:
                self._doze_until_ns(cadence.deadline_ns - self._ahead_ns)
                if self._skip_missed(cadence) or self._stopping:
                    continue
                self._call(self._ahead, cadence)
            self._sleep_until_ns(cadence.deadline_ns)
            if self._skip_missed(cadence) or self._stopping:
                continue
            self._call(self._callback, cadence)
            self.num_ticks += 1
            cadence.advance()

    def _skip_missed(self, cadence: Cadence) -> bool:
        num_missed = cadence.skip_missed(self._clock.now_ns())
        self.num_overruns = cadence.num_missed
        return num_missed > 0

    def _call(self, callback: TickCallback, cadence: Cadence) -> None:
        try:
            callback(cadence.deadline_ns, cadence.tick)
        except Exception:  # noqa: B902, BLE001 one bad tick must not end the loop
            self.num_errors += 1

    def _nap_until_ns(self, time_ns: int) -> None:
        """Sleep until about a time, on the machine's clock; it ends a little late."""
        while not self._stopping and (rest_ns := time_ns - self._clock.now_ns()) > 0:
            time.sleep(min(rest_ns, _NAP_NS) / NS_PER_S)

    def _sleep_precisely(self, deadline_ns: int) -> None:
        self._nap_until_ns(deadline_ns - _SPIN_NS)
        while self._clock.now_ns() < deadline_ns and not self._stopping:
            pass
