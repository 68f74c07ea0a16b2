# SPDX-License-Identifier: Apache-2.0
"""The steady clock of the tick, and what stands for it."""

from __future__ import annotations

import time
from typing import Protocol

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


class Clock(Protocol):
    """A clock that never runs backward."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since an arbitrary but fixed origin."""
        ...


class SteadyClock:
    """The machine's monotonic clock, the same for all of its processes. Any thread may read it."""

    def now_ns(self) -> int:
        """Return `time.monotonic_ns()`."""
        return time.monotonic_ns()
