# SPDX-License-Identifier: Apache-2.0
"""The way from callbacks to the robot, whichever thread owns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..robot.robot import Robot


class RobotAccess(Protocol):
    """Used by the executor's thread."""

    @property
    def robot(self) -> Robot:
        """The robot, to read its figures."""
        ...

    def submit(self, call: Callable[[Robot], None]) -> None:
        """Have a call made in the thread that owns the robot: now, if that is this one."""
        ...

    def deliver(self, call: Callable[[], None]) -> None:
        """Have a call made in the executor's thread; the owner of the robot asks for it."""
        ...
