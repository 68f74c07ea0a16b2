# SPDX-License-Identifier: Apache-2.0
"""Who drives and how, wherever the tick runs: each change is told and kept in the memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.subscription import Subscription
from std_msgs.msg import String

import oxygen_ros.msg as msg

from ...robot.settings import Publish
from ...runtime.runtime import Runtime
from ..actuation.mode_publisher import mode_qos, ModePublisher
from ..actuation.parameter_publisher import parameters_qos, parse_parameters, TOPIC
from ..clocks import ClockBridge, ns_of
from ..faults import FaultLog
from ..middleware.endpoints import make_subscription
from .run_memory import RunMemory


class TickWatch:
    """Made at configure. `drain` belongs to the executor's thread; changes may come from any.

    A tick in another process publishes ~/mode and ~/tick_parameters itself and is listened to.

    :param wake: asks the executor to call `drain` soon.
    """

    def __init__(
        self,
        node: Node,
        runtime: Runtime,
        clock: ClockBridge,
        memory: RunMemory,
        faults: FaultLog,
        wake: Callable[[], None],
    ) -> None:
        self._node = node
        self._memory = memory
        self._wake = wake
        self._waiting: deque[msg.Mode] = deque()
        self._publisher: ModePublisher | None = None
        self._subscriptions: list[Subscription[Any]] = []
        if runtime.config.publish is Publish.ELSEWHERE:
            group = MutuallyExclusiveCallbackGroup()
            self._subscriptions = [
                make_subscription(
                    node, msg.Mode, '~/mode', faults.guard('mode', self._take), mode_qos(), group
                ),
                make_subscription(
                    node,
                    String,
                    f'~/{TOPIC}',
                    faults.guard(TOPIC, self._take_parameters),
                    parameters_qos(),
                    group,
                ),
            ]
        else:
            self._publisher = ModePublisher(node, '~', runtime.arming, clock, faults, self._take)

    def _take(self, message: msg.Mode) -> None:
        self._waiting.append(message)
        self._wake()

    def _take_parameters(self, message: String) -> None:
        self._memory.tick_parameters(parse_parameters(message.data))

    def drain(self) -> None:
        """Hand on the changes since the last call, in order."""
        while self._waiting:
            message = self._waiting.popleft()
            self._memory.mode(message.mode, ns_of(message.stamp), message.reason)

    def destroy(self) -> None:
        """Take the topics back."""
        if self._publisher is not None:
            self._publisher.destroy()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
