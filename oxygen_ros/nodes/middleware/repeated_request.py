# SPDX-License-Identifier: Apache-2.0
"""A request whose answer may get lost.

Upstream: ros2/rmw_fastrtps pull request 418 (open since 2020), the design in which a server holds
requests back until it knows of the client. Seen with rmw_fastrtps 9.3.3. It may go with a release
that has it.
"""

from __future__ import annotations

import time
from typing import Any


class RepeatedRequest:
    """A request that is sent again now and then, for as long as somebody looks.

    A server may get a request before it knows of the client; rmw_fastrtps then drops the answer.

    :param client: a service client of rclpy.
    :param period_s: between two requests; infinity: there is one.
    :param first_s: when the first is sent (`time.monotonic`).
    """

    def __init__(self, client: Any, request: Any, period_s: float, first_s: float = 0.0) -> None:
        self._client = client
        self._request = request
        self._period_s = period_s
        self._next_s = first_s
        self._pending: list[Any] = []
        self.answer: Any = None  # the newest so far

    def newest(self) -> Any:
        """Send it if it is due; return the newest answer; None: there is none yet."""
        now_s = time.monotonic()
        if now_s >= self._next_s and self._client.service_is_ready():
            self._next_s = now_s + self._period_s
            self._pending.append(self._client.call_async(self._request))
        for future in [future for future in self._pending if future.done()]:
            self._pending.remove(future)
            self.answer = future.result()
        return self.answer
