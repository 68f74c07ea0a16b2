# SPDX-License-Identifier: Apache-2.0
"""A timer whose rate may be changed while it runs, and be 0."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock
from rclpy.node import Node

_IDLE_PERIOD_S = 3600.0  # of a timer that is cancelled, which needs one all the same


class RateTimer:
    """Calls back at a rate; belongs to the executor's thread.

    :param rate_hz: calls per second; 0: none.
    """

    def __init__(
        self,
        node: Node,
        rate_hz: float,
        callback: Callable[[], None],
        clock: Clock,
        group: CallbackGroup,
    ) -> None:
        self._node = node
        self._rate_hz = rate_hz
        self._timer = node.create_timer(
            _IDLE_PERIOD_S, callback, clock=clock, callback_group=group, autostart=False
        )
        self._apply()

    def set_rate(self, rate_hz: float) -> None:
        """Call back at another rate from now on."""
        if rate_hz != self._rate_hz:
            self._rate_hz = rate_hz
            self._apply()

    def destroy(self) -> None:
        """Take the timer back."""
        self._node.destroy_timer(self._timer)

    def _apply(self) -> None:
        self._timer.cancel()
        if self._rate_hz > 0.0:
            self._timer.timer_period_ns = round(1e9 / self._rate_hz)
            self._timer.reset()
