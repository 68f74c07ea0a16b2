# SPDX-License-Identifier: Apache-2.0
"""Joint states: mapped by name and handed on at once, which is cheap enough for the callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import time

from sensor_msgs.msg import JointState

from ...ingest import IngestRules, JointStream, Receipt
from ...types import RobotState
from ..clocks import ClockBridge, ns_of


class JointStateInput:
    """Takes joint_states; belongs to the executor's thread."""

    def __init__(
        self,
        joints: Sequence[str],
        rules: IngestRules,
        clock: ClockBridge,
        put_state: Callable[[RobotState], None],
    ) -> None:
        self.stream = JointStream(joints, rules, put_state)
        self.counts = self.stream.counts
        self._clock = clock

    def offer(self, message: JointState) -> None:
        """Hand on the measured positions, or count why they cannot be used."""
        self.counts.received += 1
        receipt = Receipt(time.monotonic_ns(), self._clock.offset_ns())
        self.stream.take(message.name, message.position, ns_of(message.header.stamp), receipt)
