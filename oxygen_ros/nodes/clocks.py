# SPDX-License-Identifier: Apache-2.0
"""Between the two clocks: ROS time for stamps, this machine's steady clock for control."""

from __future__ import annotations

import time

from builtin_interfaces.msg import Time
from rclpy.clock import Clock

NS_PER_S = 1_000_000_000

# Readings of the two clocks are taken one after the other and may be interrupted in between; a
# smaller change of their offset is noise, and stamps that follow noise would not be evenly spaced.
_NOISE_NS = 500_000


class ClockBridge:
    """The offset of ROS time from the steady clock. Any thread may use it.

    It is read anew at each use, so that it follows steps of the system's clock and simulated time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_ns = self._read_ns()

    def _read_ns(self) -> int:
        return int(self._clock.now().nanoseconds) - time.monotonic_ns()

    def offset_ns(self) -> int:
        """Return ROS time minus steady time."""
        offset_ns = self._read_ns()
        if abs(offset_ns - self._offset_ns) > _NOISE_NS:
            self._offset_ns = offset_ns
        return self._offset_ns


def stamp_of(time_ns: int) -> Time:
    """Return nanoseconds as a message; a time before 1970 is 0."""
    seconds, nanoseconds = divmod(max(time_ns, 0), NS_PER_S)
    return Time(sec=seconds, nanosec=nanoseconds)


def ns_of(stamp: Time) -> int:
    """Return a message's time in nanoseconds."""
    return int(stamp.sec) * NS_PER_S + int(stamp.nanosec)
