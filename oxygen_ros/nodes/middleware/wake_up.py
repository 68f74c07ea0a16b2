# SPDX-License-Identifier: Apache-2.0
"""A call of the executor that any thread may request.

Upstream: ros2/rmw_fastrtps pull request 895 ("Fixes in rmw_wait"), merged in July 2026. Seen with
rmw_fastrtps 9.3.3. With a release that has it, `WakeUp` may become a plain guard condition.
"""

from __future__ import annotations

from collections.abc import Callable
import time

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

_AGAIN_NS = 5_000_000  # a request that is older has its trigger repeated by the next one
_LOOK_S = 0.2
_NUM_LOOKS = 3  # that find one and the same request: it was lost


class WakeUp:
    """Has the executor make a call soon, from any thread; many requests make one call.

    It lives as long as its node. A trigger of a guard condition can get lost: rmw_fastrtps asks
    whether a condition was triggered and then clears it, in two steps (`rmw_wait` in
    rmw_wait.cpp), and forgets a trigger that comes between the two. Whoever waits for the one call
    that answers all requests would wait for ever. So a later request triggers again, and a timer
    looks for the last one.

    :param callback: takes what is new; must not raise.
    """

    def __init__(self, node: Node, callback: Callable[[], None]) -> None:
        self.num_lost = 0  # triggers that came to nothing
        self._node = node
        self._callback = callback
        self._requested_ns = 0  # steady clock, of the first request since the call; 0: none
        self._triggered_ns = 0
        self._looked_ns = 0  # the request that the last look found
        self._num_looks = 0  # that found it
        # In groups of their own: no other callback keeps them from running.
        self._guard = node.create_guard_condition(self._call, MutuallyExclusiveCallbackGroup())
        self._timer = node.create_timer(
            _LOOK_S,
            self._look,
            MutuallyExclusiveCallbackGroup(),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def __call__(self) -> None:
        """Request a call."""
        now_ns = time.monotonic_ns()
        if self._requested_ns and now_ns - self._triggered_ns < _AGAIN_NS:
            return
        self._requested_ns = self._requested_ns or now_ns
        self._triggered_ns = now_ns
        self._guard.trigger()

    def _call(self) -> None:
        self._requested_ns = 0  # first: a request that comes meanwhile is one for another call
        self._callback()

    def _look(self) -> None:
        requested_ns = self._requested_ns
        self._num_looks = self._num_looks + 1 if requested_ns == self._looked_ns else 1
        self._looked_ns = requested_ns
        # Between looks the executor has made all calls that it knew to be due; after a pause of
        # the machine two of them may come at once.
        if requested_ns and self._num_looks == _NUM_LOOKS:
            self.num_lost += 1
            self._node.get_logger().warning(
                'a wake-up of the executor got lost and was made up for', throttle_duration_sec=5.0
            )
            self._call()
