# SPDX-License-Identifier: Apache-2.0
"""Joint states in the order of their coming: which are the robot's measured positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..types import RobotState
from .errors import JointStateError
from .joint_mapper import JointMapper
from .rules import IngestRules, MessageCounts, Receipt, TIME_JUMP_NS, trusted_stamp


@dataclass(slots=True)
class JointCounts(MessageCounts):
    """What became of the messages."""

    backward: int = 0  # older than the one before it, by little: out of order
    replaced_stamps: int = 0  # zero or in the future: the time of receipt was taken


class JointStream:
    """Takes joint states: a thousand a second cost little. One thread at a time.

    :param joints: in the model's order.
    :param put_state: takes the newest measured positions.
    """

    def __init__(
        self, joints: Sequence[str], rules: IngestRules, put_state: Callable[[RobotState], None]
    ) -> None:
        self.counts = JointCounts()
        self._mapper = JointMapper(joints)
        self._tolerance_ns = round(rules.future_tolerance_s * 1e9)
        self._put_state = put_state
        self._newest_ns = 0

    def begin(self) -> None:
        """Forget what came before: time jumped."""
        self._newest_ns = 0

    def take(
        self, names: Sequence[str], positions: Sequence[float], stamp_ns: int, receipt: Receipt
    ) -> bool:
        """Hand on the measured positions, or count why they cannot be used.

        :param names: of the message's joints, in any order.
        :param positions: one for each name, SI units.
        :param stamp_ns: the message's header stamp.
        :return: whether they were handed on.
        """
        counts = self.counts
        try:
            values = self._mapper.map(names, positions)
        except JointStateError as error:
            counts.refused += 1
            counts.newest_problem = str(error)
            return False
        stamp = trusted_stamp(stamp_ns, receipt, self._tolerance_ns)
        counts.replaced_stamps += stamp.replaced
        if not stamp.replaced and 0 < self._newest_ns - stamp.stamp_ns < TIME_JUMP_NS:
            counts.backward += 1
            return False
        self._newest_ns = stamp.stamp_ns
        self._put_state(RobotState(stamp.stamp_ns, stamp.steady_ns, values.astype(np.float32)))
        return True
