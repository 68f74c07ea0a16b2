# SPDX-License-Identifier: Apache-2.0
"""Faults: an exception in a callback is counted, kept and logged, and ends nothing."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
import functools
import time
import traceback
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec('P')
R = TypeVar('R')

_LOG_PERIOD_S = 5.0


class Logger(Protocol):
    """What rclpy's logger and `ListLogger` have in common."""

    def info(self, message: str, *, throttle_duration_sec: float = 0.0) -> object:
        """Log what an operator may want to know."""
        ...

    def warning(self, message: str, *, throttle_duration_sec: float = 0.0) -> object:
        """Log what is odd; `throttle_duration_sec` limits how often."""
        ...

    def error(self, message: str, *, throttle_duration_sec: float = 0.0) -> object:
        """Log what has failed."""
        ...


class ListLogger:
    """Keeps warnings and errors, each text once, for shells without a log."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}

    def info(self, message: str, *, throttle_duration_sec: float = 0.0) -> None:
        """Drop it."""

    def warning(self, message: str, *, throttle_duration_sec: float = 0.0) -> None:
        """Keep it."""
        del throttle_duration_sec
        self.lines[message] = None

    error = warning


class FaultLog:
    """Counts the faults of one robot's callbacks, by callback.

    Any thread may note one; the counts of two threads at one instant may lose one.
    """

    def __init__(self, logger: Logger) -> None:
        self.counts: Counter[str] = Counter()
        self.newest = ''
        self._logger = logger
        self._next_log_s: dict[str, float] = {}

    def note(self, name: str, error: BaseException) -> None:
        """Count a fault, and log it at most every few seconds for each name."""
        self.counts[name] += 1
        self.newest = f'{name}: {type(error).__name__}: {error}'
        now_s = time.monotonic()
        if now_s < self._next_log_s.get(name, 0.0):
            return
        self._next_log_s[name] = now_s + _LOG_PERIOD_S
        trace = ''.join(traceback.format_exception(error)).rstrip()
        self._logger.error(f'{name} failed ({self.counts[name]} in all):\n{trace}')

    def guard(
        self, name: str, callback: Callable[P, R], otherwise: R | None = None
    ) -> Callable[P, R | None]:
        """Return the callback so that an exception yields `otherwise` instead of going up."""

        @functools.wraps(callback)  # rclpy looks at the signature
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
            try:
                return callback(*args, **kwargs)
            except Exception as error:  # noqa: B902, BLE001 one bad message must not end the node
                self.note(name, error)
                return otherwise

        return guarded

    def guard_service(
        self, name: str, callback: Callable[[Any, Any], Any]
    ) -> Callable[[Any, Any], Any]:
        """Return a service callback that answers success=false with the reason of an exception."""

        def guarded(request: Any, response: Any) -> Any:
            try:
                return callback(request, response)
            except Exception as error:  # noqa: B902, BLE001 whoever asked must get an answer
                self.note(name, error)
                response.success = False
                response.message = f'{type(error).__name__}: {error}'
                return response

        return guarded


@dataclass(slots=True)
class EngineHealth:
    """How the engine fares; written by whoever drives it, read by any thread."""

    is_alive: bool = False  # its thread runs
    failed: bool = False  # it cannot serve, until a cycle with work in it succeeds
    is_lost: bool = False  # it failed and does not try again
    heartbeat_ns: int = 0  # steady clock, the last time its loop went round
    num_faults: int = 0
    reports: deque[str] = field(default_factory=lambda: deque(maxlen=16))  # tracebacks

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self.is_alive and not self.failed
