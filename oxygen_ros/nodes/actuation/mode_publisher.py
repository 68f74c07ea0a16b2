# SPDX-License-Identifier: Apache-2.0
"""~/mode: each change of who drives, told by the process that ticks."""

from __future__ import annotations

from collections.abc import Callable
import time

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

import oxygen_ros.msg as msg

from ...control import Arming, ArmState
from ..clocks import ClockBridge, stamp_of
from ..faults import FaultLog
from ..middleware.endpoints import make_publisher

# A change does not wait for the others, and none of a burst of them is lost.
_DEPTH = 16


def mode_qos() -> QoSProfile:
    """Return the profile of ~/mode, reliable and latched."""
    return QoSProfile(depth=_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ModePublisher:
    """Publishes the state of a robot's arming now and at each change.

    Publishing needs no executor; changes come from the thread of the request.

    :param prefix: of the topic's name: `~`, or the node in whose name it is published.
    :param on_mode: takes each message too; must return at once.
    """

    def __init__(
        self,
        node: Node,
        prefix: str,
        arming: Arming,
        clock: ClockBridge,
        faults: FaultLog,
        on_mode: Callable[[msg.Mode], None] = lambda message: None,
    ) -> None:
        self._node = node
        self._arming = arming
        self._clock = clock
        self._faults = faults
        self._on_mode = on_mode
        self._publisher = make_publisher(node, msg.Mode, f'{prefix}/mode', mode_qos())
        arming.on_change = self._on_change
        self._on_change(arming.state, 'configure')

    def _on_change(self, state: ArmState, request: str) -> None:
        stamp = stamp_of(time.monotonic_ns() + self._clock.offset_ns())
        message = msg.Mode(stamp=stamp, mode=state.value, reason=request)
        try:
            self._publisher.publish(message)
        except Exception as error:  # noqa: B902, BLE001 the change itself has been made
            self._faults.note('mode', error)
        self._on_mode(message)

    def destroy(self) -> None:
        """Take the topic back."""
        self._arming.on_change = lambda state, request: None
        self._node.destroy_publisher(self._publisher)
