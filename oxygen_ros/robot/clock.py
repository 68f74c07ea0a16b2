# SPDX-License-Identifier: Apache-2.0
"""The two clocks of a robot: a steady one for control, ROS time for stamps."""

from __future__ import annotations

from typing import Protocol


class RobotClock(Protocol):
    """Any thread may read it."""

    def now_ns(self) -> int:
        """Return the time on the steady clock."""
        ...

    def offset_ns(self) -> int:
        """Return ROS time minus steady time."""
        ...


def ros_now_ns(clock: RobotClock) -> int:
    """Return ROS time."""
    return clock.now_ns() + clock.offset_ns()
