"""Who drives, wherever the tick runs: each change is told on ~/mode and kept in the memory."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.subscription import Subscription

import oxygen_ros.msg as msg

from ...runtime.runtime import Publish, Runtime
from ..actuation.mode_publisher import mode_qos, ModePublisher
from ..clocks import ClockBridge, ns_of
from ..endpoints import make_subscription
from ..faults import FaultLog
from .run_memory import RunMemory


class ModeWatch:
    """Made at configure. `drain` belongs to the executor's thread; changes may come from any.

    A tick in another process publishes ~/mode itself and is listened to.

    :param wake: asks the executor to call `drain` soon.
    """

    def __init__(self, node: Node, runtime: Runtime, clock: ClockBridge, memory: RunMemory,
                 faults: FaultLog, wake: Callable[[], None]) -> None:
        self._node = node
        self._memory = memory
        self._wake = wake
        self._waiting: deque[msg.Mode] = deque()
        self._publisher: ModePublisher | None = None
        self._subscription: Subscription[Any] | None = None
        if runtime.config.publish is Publish.ELSEWHERE:
            self._subscription = make_subscription(
                node, msg.Mode, '~/mode', faults.guard('mode', self._take), mode_qos(),
                MutuallyExclusiveCallbackGroup())
        else:
            self._publisher = ModePublisher(node, '~', runtime.arming, clock, faults, self._take)

    def _take(self, message: msg.Mode) -> None:
        self._waiting.append(message)
        self._wake()

    def drain(self) -> None:
        """Hand on the changes since the last call, in order."""
        while self._waiting:
            message = self._waiting.popleft()
            self._memory.mode(message.mode, ns_of(message.stamp), message.reason)

    def destroy(self) -> None:
        """Take the topic back."""
        if self._publisher is not None:
            self._publisher.destroy()
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
