# SPDX-License-Identifier: Apache-2.0
"""When ROS time does not go on from where it was: a simulation or a recording began anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node

# Forward only far, for paused or slow simulated time catches up in steps.
_THRESHOLD = JumpThreshold(
    min_forward=Duration(seconds=5), min_backward=Duration(nanoseconds=-1), on_clock_change=True
)


def watch_time(node: Node, on_jump: Callable[[TimeJump], None]) -> Any:
    """Have each jump reported, after it; return what to keep, and to `unregister` in the end."""
    # The clock forgets a callback whose handle is dropped.
    return node.get_clock().create_jump_callback(_THRESHOLD, post_callback=on_jump)


def describe(jump: TimeJump) -> str:
    """Return which way and how far."""
    return f'ROS time jumped ({jump.clock_change.name}, {jump.delta.nanoseconds * 1e-9:.3f} s)'
