# SPDX-License-Identifier: Apache-2.0
"""The one thread that owns the engine, and its faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import threading
import time
import traceback

from ..engine.engine import Engine
from ..robot.faults import EngineHealth

_FAULT_BUDGET = 5
_FAULT_WINDOW_NS = 10_000_000_000
_RETRY_S = 2.0  # a failed engine tries again this often


class EngineThread:
    """Runs engine cycles from `start` to `stop`.

    Everything of the engine happens in this thread. A fault ends the live requests with an error
    and drops the prefix. After too many in a short time the engine has failed: it tries again
    every two seconds, so that the robot holds until the cause has ended. Where its memory is in
    disorder, it stays stopped.

    :param health: written here, read by any thread.
    :param work: set by whoever has something new for the engine: ends its idle wait.
    :param on_fault: called in this thread after each fault.
    """

    def __init__(
        self,
        engine: Engine,
        health: EngineHealth,
        work: threading.Event,
        on_fault: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._health = health
        self._work = work
        self._on_fault = on_fault
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._fault_times_ns: deque[int] = deque(maxlen=_FAULT_BUDGET)

    def start(self, grid_start_ns: int) -> None:
        """Start; action passes may be due at grid_start_ns + k * period (steady clock)."""
        assert self._thread is None
        self._stop.clear()
        self._health.failed = self._health.is_lost = False
        self._fault_times_ns.clear()
        self._engine.action.align(grid_start_ns)
        self._thread = threading.Thread(target=self._run, name='oxygen_engine', daemon=True)
        self._health.is_alive = True
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Stop at the next slice border, give every page back; False: it did not stop in time."""
        if self._thread is None:
            return True
        self._stop.set()
        self._engine.interrupt()
        self._work.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        self._thread = None
        return True

    def _run(self) -> None:
        engine, health = self._engine, self._health
        while not self._stop.is_set():
            health.heartbeat_ns = now_ns = time.monotonic_ns()
            deadline_ns = engine.action.deadline_ns(now_ns)
            self._work.clear()
            try:
                worked = engine.run_cycle(now_ns, deadline_ns)
            except Exception:  # noqa: B902, BLE001 reported, and there is a budget
                self._recover()
                if health.is_lost:
                    break
                if health.failed:
                    self._stop.wait(_RETRY_S)
                continue
            if worked:
                health.failed = False
            else:
                # Until the deadline that this cycle knew: it may have passed meanwhile, and the
                # one after it is a period away.
                self._work.wait(max(0.0, (deadline_ns - time.monotonic_ns()) * 1e-9))
        try:
            engine.stop()
        except Exception:  # noqa: B902, BLE001 reported
            self._report()
        health.is_alive = False

    def _report(self) -> None:
        self._health.num_faults += 1
        self._health.reports.append(traceback.format_exc())
        self._on_fault()

    def _recover(self) -> None:
        """Bring the engine back to a known state, and note whether it failed too often."""
        self._report()
        now_ns = time.monotonic_ns()
        self._fault_times_ns.append(now_ns)
        full = len(self._fault_times_ns) == _FAULT_BUDGET
        if full and now_ns - self._fault_times_ns[0] < _FAULT_WINDOW_NS:
            self._health.failed = True
        try:
            self._engine.stop()
            self._engine.check_integrity()
        except Exception:  # noqa: B902, BLE001 reported
            self._report()
            self._health.failed = self._health.is_lost = True
