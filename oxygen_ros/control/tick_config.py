# SPDX-License-Identifier: Apache-2.0
"""Settings of the control tick."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import NS_PER_MS, NS_PER_S
from .limits import ActuationMode


@dataclass(frozen=True, slots=True)
class TickConfig:
    """
    Settings of the tick.

    :raises ValueError: names the field, what was expected and what came.
    """

    num_joints: int
    mode: ActuationMode = ActuationMode.POSITION
    period_ns: int = 20 * NS_PER_MS
    max_observation_age_ns: int = 400 * NS_PER_MS
    max_state_age_ns: int = 200 * NS_PER_MS
    activation_ramp_ns: int = NS_PER_S  # from the measured joints to the chunk
    recovery_ramp_ns: int = 100 * NS_PER_MS  # from a held target back to the chunk
    require_state: bool = True  # false: the actuators need no start from the measured joints
    deltas: tuple[bool, ...] = ()  # [num_joints] numbers are changes of the target; empty: none
    dry_run: bool = False  # nothing reaches the actuators, so they are not expected to follow
    awaits_limits: bool = False  # hold until the limits are known
    # How long before its deadline a target is decided, at most half a period; 0: at the deadline
    decide_ahead_ns: int = 350_000

    def __post_init__(self) -> None:
        if not isinstance(self.mode, ActuationMode):
            raise ValueError(f'mode: expected position or velocity, got {self.mode!r}')
        if self.deltas and len(self.deltas) != self.num_joints:
            raise ValueError(f'deltas: expected {self.num_joints} values, got {len(self.deltas)}')
        if self.deltas and (self.mode is ActuationMode.VELOCITY or not self.require_state):
            raise ValueError('deltas: expected together with mode position and require_state')
        for name, least in (
            ('num_joints', 1),
            ('period_ns', 1),
            ('max_observation_age_ns', 1),
            ('max_state_age_ns', 1),
            ('activation_ramp_ns', 0),
            ('recovery_ramp_ns', 0),
            ('decide_ahead_ns', 0),
        ):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f'{name}: expected at least {least}, got {value}')
        if self.decide_ahead_ns > self.period_ns // 2:
            raise ValueError(
                f'decide_ahead_ns: expected at most half a period '
                f'({self.period_ns // 2}), got {self.decide_ahead_ns}'
            )
