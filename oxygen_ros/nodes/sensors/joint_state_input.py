"""Joint states: mapped by name and handed on at once, which is cheap enough for the callback."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import time

import numpy as np
from sensor_msgs.msg import JointState

from ...ingest import JointMapper, JointStateError
from ...types import RobotState
from ..clocks import ClockBridge, ns_of


@dataclass(slots=True)
class JointCounts:
    """What became of the messages since the node was configured."""

    received: int = 0
    refused: int = 0
    replaced_stamps: int = 0  # zero or in the future: the time of receipt was taken
    newest_problem: str = ''


class JointStateInput:
    """Takes joint_states; belongs to the executor's thread."""

    def __init__(self, joints: Sequence[str], future_tolerance_s: float, clock: ClockBridge,
                 put_state: Callable[[RobotState], None]) -> None:
        self.counts = JointCounts()
        self._mapper = JointMapper(joints)
        self._future_tolerance_ns = round(future_tolerance_s * 1e9)
        self._clock = clock
        self._put_state = put_state

    def offer(self, message: JointState) -> None:
        """Hand on the measured positions, or count why they cannot be used."""
        receipt_ns = time.monotonic_ns()
        counts = self.counts
        counts.received += 1
        try:
            positions = self._mapper.map(message.name, message.position)
        except JointStateError as error:
            counts.refused += 1
            counts.newest_problem = str(error)
            return
        offset_ns = self._clock.offset_ns()
        stamp_ns = ns_of(message.header.stamp)
        if stamp_ns <= 0 or stamp_ns > receipt_ns + offset_ns + self._future_tolerance_ns:
            counts.replaced_stamps += 1
            stamp_ns = receipt_ns + offset_ns
        self._put_state(RobotState(stamp_ns, stamp_ns - offset_ns, positions.astype(np.float32)))
