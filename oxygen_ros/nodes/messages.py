# SPDX-License-Identifier: Apache-2.0
"""Messages of rclpy as `robot.messages` makes them, and times as rclpy states them."""

from __future__ import annotations

from functools import cache
import importlib
from typing import Any

from builtin_interfaces.msg import Time

from ..robot.messages import NS_PER_S, time_message


@cache
def _message_class(msgtype: str) -> Any:
    package, folder, name = msgtype.split('/')
    return getattr(importlib.import_module(f'{package}.{folder}'), name)


def make_message(msgtype: str, **fields: Any) -> Any:
    """Return a message of rclpy."""
    return _message_class(msgtype)(**fields)


def stamp_of(time_ns: int) -> Time:
    """Return nanoseconds as a message; a time before 1970 is 0."""
    stamp: Time = time_message(make_message, time_ns)
    return stamp


def ns_of(stamp: Time) -> int:
    """Return a message's time in nanoseconds."""
    return int(stamp.sec) * NS_PER_S + int(stamp.nanosec)
