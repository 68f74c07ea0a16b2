# SPDX-License-Identifier: Apache-2.0
"""Guards: an exception in a callback is counted, kept and logged, and ends nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
import functools
import time
import traceback
from typing import Any, ParamSpec, TypeVar

from rclpy.impl.rcutils_logger import RcutilsLogger

P = ParamSpec('P')
R = TypeVar('R')

_LOG_PERIOD_S = 5.0


class FaultLog:
    """Counts the faults of one node's callbacks, by callback.

    Any thread may note one; the counts of two threads at one instant may lose one.
    """

    def __init__(self, logger: RcutilsLogger) -> None:
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
