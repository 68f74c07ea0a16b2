# SPDX-License-Identifier: Apache-2.0
"""Between the two clocks: ROS time for stamps, this machine's steady clock for control."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from rclpy.clock import Clock, ClockChange, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node

# Readings of the two clocks are taken one after the other and may be interrupted in between; a
# smaller change of their offset is noise, and stamps that follow noise would not be evenly spaced.
_NOISE_NS = 500_000

# Forward only far, for paused or slow simulated time catches up in steps.
_FAR = Duration(seconds=5)
_ANY = Duration(nanoseconds=1)


def _threshold(min_forward: Duration) -> JumpThreshold:
    backward = Duration(nanoseconds=-1)
    return JumpThreshold(min_forward=min_forward, min_backward=backward, on_clock_change=True)


class ClockBridge:
    """A robot's clock. Any thread may use it.

    The offset is read again at each use, so that it follows steps of the system's clock and
    simulated time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_ns = self._read_ns()

    def _read_ns(self) -> int:
        return int(self._clock.now().nanoseconds) - time.monotonic_ns()

    def now_ns(self) -> int:
        """Return the time on the steady clock."""
        return time.monotonic_ns()

    def ros_now_ns(self) -> int:
        """Return ROS time."""
        return int(self._clock.now().nanoseconds)

    def offset_ns(self) -> int:
        """Return ROS time minus steady time."""
        offset_ns = self._read_ns()
        if abs(offset_ns - self._offset_ns) > _NOISE_NS:
            self._offset_ns = offset_ns
        return self._offset_ns


def watch_time(node: Node, on_jump: Callable[[TimeJump], None]) -> Any:
    """Have each jump of ROS time reported, after it; return what to `unregister` in the end.

    It does not go on from where it was: a simulation or a recording began anew.
    """
    # The clock forgets a callback whose handle is dropped.
    return node.get_clock().create_jump_callback(_threshold(_FAR), post_callback=on_jump)


def watch_each_time(node: Node, on_time: Callable[[TimeJump], None]) -> Any:
    """Have each step of simulated time reported too; see `watch_time`."""
    return node.get_clock().create_jump_callback(_threshold(_ANY), post_callback=on_time)


def is_small(jump: TimeJump) -> bool:
    """Return whether a step of simulated time is no jump: it goes on from where it was."""
    forward_ns = int(jump.delta.nanoseconds)
    return jump.clock_change == ClockChange.ROS_TIME_NO_CHANGE and (
        0 <= forward_ns < int(_FAR.nanoseconds)
    )


def describe_jump(jump: TimeJump) -> str:
    """Return which way ROS time jumped and how far."""
    return f'ROS time jumped ({jump.clock_change.name}, {jump.delta.nanoseconds * 1e-9:.3f} s)'
