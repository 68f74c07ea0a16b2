# SPDX-License-Identifier: Apache-2.0
"""Settings of the control tick."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ..figures.ticks import MAX_OBSERVATION_AGE_MS
from ..setting import check, parameter, refusal, setting, SettingError
from ..types import CONTROL_RATE_HZ
from .action_space import parse_action_spaces
from .clock import NS_PER_MS, NS_PER_S
from .limits import ActuationMode


@dataclass(frozen=True, slots=True)
class TickConfig:
    """Settings of the tick.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'actuation'

    num_joints: int
    rate_hz: float = setting(
        CONTROL_RATE_HZ, 'Control ticks per second', 'Hz', low=1.0, high=1000.0
    )
    space: tuple[str, ...] = setting(
        ('joint_position',),
        'What the values of a chunk mean, for all joints or for each: joint_position, '
        'joint_delta (from one step to the next) or joint_velocity; effort and end-effector '
        'poses are refused, since limits and holds work on joints',
    )
    # The actuators are not expected to follow then.
    dry_run: bool = setting(
        False, 'Run everything and show ~/target, but send nothing to the actuators'
    )
    decide_ahead_ms: float = setting(
        0.35,
        'How long before its deadline a target is decided, so that at the deadline it is only '
        'published; at most half a period; 0: at the deadline',
        'ms',
        low=0.0,
        high=100.0,
    )
    activation_ramp_s: float = setting(
        1.0,
        'Duration of the ramp from the measured joints to the chunk after activation and enable',
        's',
        low=0.0,
        high=60.0,
        live=True,
    )
    recovery_ramp_s: float = setting(
        0.1,
        'Duration of the ramp from a held target back to the chunk',
        's',
        low=0.0,
        high=60.0,
        live=True,
    )
    require_state: bool = setting(True, 'Hold while there is no current joint state', live=True)
    max_observation_age_ms: float = setting(
        MAX_OBSERVATION_AGE_MS,
        'A target from an older observation is not sent: the node holds',
        'ms',
        low=1.0,
        high=60_000.0,
        live=True,
        name='max_observation_age_ms',
    )
    state_max_age_s: float = setting(
        1.0,
        'Age of a joint state beyond which it is not used',
        's',
        low=0.001,
        high=3600.0,
        name='sensors.state_max_age_s',
    )
    awaits_limits: bool = False  # hold until the limits are known
    mode: ActuationMode = field(init=False)  # what a target means to the actuators
    deltas: tuple[bool, ...] = field(init=False)  # [num_joints] changes of the target; empty: none

    def __post_init__(self) -> None:
        check(self)
        if self.num_joints < 1:
            raise ValueError(f'num_joints: expected at least 1, got {self.num_joints}')
        try:
            mode, deltas = parse_action_spaces(self.space, self.num_joints)
        except ValueError as error:
            raise SettingError(f'{parameter(TickConfig, "space")}: {error}') from error
        object.__setattr__(self, 'mode', mode)
        object.__setattr__(self, 'deltas', deltas)
        if deltas and not self.require_state:
            needed = parameter(TickConfig, 'require_state')
            raise refusal(self, 'space', f'no joint_delta without {needed}')
        half_ms = 500.0 / self.rate_hz
        if self.decide_ahead_ms > half_ms:
            raise refusal(self, 'decide_ahead_ms', f'at most half a period ({half_ms:g} ms)')

    @property
    def period_ns(self) -> int:
        """Time between two ticks."""
        return round(NS_PER_S / self.rate_hz)

    @property
    def max_observation_age_ns(self) -> int:
        """Age beyond which an observation is no basis for a target."""
        return round(self.max_observation_age_ms * NS_PER_MS)

    @property
    def state_max_age_ns(self) -> int:
        """Age beyond which measured joints are not acted on."""
        return round(self.state_max_age_s * NS_PER_S)

    @property
    def activation_ramp_ns(self) -> int:
        """From the measured joints to the chunk."""
        return round(self.activation_ramp_s * NS_PER_S)

    @property
    def recovery_ramp_ns(self) -> int:
        """From a held target back to the chunk."""
        return round(self.recovery_ramp_s * NS_PER_S)

    @property
    def decide_ahead_ns(self) -> int:
        """How long before its deadline a target is decided; 0: at the deadline."""
        return round(self.decide_ahead_ms * NS_PER_MS)
