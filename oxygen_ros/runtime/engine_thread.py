# SPDX-License-Identifier: Apache-2.0
"""The one thread that owns the engine, its inbox and its faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import threading
import time
import traceback

from ..engine.engine import Engine

Command = Callable[[Engine], None]

_FAULT_BUDGET = 5
_FAULT_WINDOW_NS = 10_000_000_000
_RETRY_S = 2.0  # a failed engine tries again this often


class EngineThread:
    """Runs engine cycles from `start` to `stop`.

    `post` and `wake` may be called by any thread; everything else of the engine happens in this
    one. A fault ends the live requests with an error and drops the prefix. After too many in a
    short time the engine has failed: it tries again every two seconds, so that the robot holds
    until the cause has ended. Where its memory is in disorder, it stays stopped.

    :param on_fault: takes the traceback's text; called in this thread.
    """

    def __init__(self, engine: Engine, on_fault: Callable[[str], None]) -> None:
        self._engine = engine
        self._on_fault = on_fault
        self._inbox: deque[Command] = deque()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._fault_times_ns: deque[int] = deque(maxlen=_FAULT_BUDGET)
        self.num_faults = 0
        self.failed = False  # and cannot serve; until a cycle with work in it succeeds
        self.is_lost = False  # failed, and does not try again
        self.heartbeat_ns = time.monotonic_ns()  # the last time the loop went round

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive() and not self.failed

    def start(self, grid_start_ns: int) -> None:
        """Start; action passes may be due at grid_start_ns + k * period (steady clock)."""
        assert self._thread is None
        self._stop.clear()
        self.failed = self.is_lost = False
        self._fault_times_ns.clear()
        self._engine.action.align(grid_start_ns)
        self._thread = threading.Thread(target=self._run, name='oxygen_engine', daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Stop at the next slice border, give every page back; False: it did not stop in time."""
        if self._thread is None:
            return True
        self._stop.set()
        self._engine.interrupt()
        self._wake.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        self._thread = None
        self._inbox.clear()
        return True

    def post(self, command: Command) -> None:
        """Have a command run between two slices, in order of posting."""
        self._inbox.append(command)
        self._wake.set()

    def wake(self) -> None:
        """End the idle wait: there may be something new to see."""
        self._wake.set()

    def poll(self) -> None:
        """Run what was posted; the engine calls it between slices."""
        while self._inbox:
            self._inbox.popleft()(self._engine)

    def _run(self) -> None:
        engine = self._engine
        while not self._stop.is_set():
            self.heartbeat_ns = now_ns = time.monotonic_ns()
            deadline_ns = engine.action.deadline_ns(now_ns)
            self._wake.clear()
            try:
                worked = engine.run_cycle(now_ns, deadline_ns)
            except Exception:  # noqa: B902, BLE001 reported, and there is a budget
                self._recover()
                if self.is_lost:
                    break
                if self.failed:
                    self._stop.wait(_RETRY_S)
                continue
            if worked:
                self.failed = False
            else:
                # Until the deadline that this cycle knew: it may have passed meanwhile, and the
                # one after it is a period away.
                self._wake.wait(max(0.0, (deadline_ns - time.monotonic_ns()) * 1e-9))
        try:
            engine.stop()
        except Exception:  # noqa: B902, BLE001 reported
            self._report()

    def _report(self) -> None:
        self.num_faults += 1
        self._on_fault(traceback.format_exc())

    def _recover(self) -> None:
        """Bring the engine back to a known state, and note whether it failed too often."""
        self._report()
        now_ns = time.monotonic_ns()
        self._fault_times_ns.append(now_ns)
        full = len(self._fault_times_ns) == _FAULT_BUDGET
        if full and now_ns - self._fault_times_ns[0] < _FAULT_WINDOW_NS:
            self.failed = True
        try:
            self._engine.stop()
            self._engine.check_integrity()
        except Exception:  # noqa: B902, BLE001 reported
            self._report()
            self.failed = self.is_lost = True
