# SPDX-License-Identifier: Apache-2.0
"""What the tick is told, in the engine's process or in one of its own; neither torch nor ROS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..control import JointLimits, LimitSettings, RealtimeSettings, TickConfig
from ..ingest import IngestRules
from ..setting import all_settings, check, make, part, read, Setting, setting
from .actuator_groups import ActuatorGroup, GroupSettings

# In a process of its own the tick has only the executor's thread beside it, which may as well hand
# over often: in less than the tick spends awake before its deadline, so that none waits for it.
_OWN_SWITCH_INTERVAL_S = 0.0001


@dataclass(frozen=True, slots=True)
class ActuationLimits:
    """Above what actuation is warned of."""

    PREFIX: ClassVar[str] = 'diagnostics'

    max_jitter_p99_ms: float = setting(
        2.0,
        'Tick lateness above which diagnostics warn (99th percentile of a second)',
        'ms',
        low=0.001,
        high=10_000.0,
        live=True,
    )
    max_held_ratio: float = setting(
        0.1,
        'Share of held ticks in a second above which diagnostics warn',
        low=0.0,
        high=1.0,
        live=True,
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class TickSettings:
    """Everything that a tick is told, checked.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    autostart: bool = setting(False, 'Configure and activate at the start of the process')
    joints: tuple[str, ...] = setting(
        tuple(f'joint_{index}' for index in range(7)),
        'Joint names as in joint_states, in the order of the model',
        none='',
    )
    engine_node: str = setting(
        'oxygen',
        'For tick_node: name of the node whose chunks it plays; its topics and services carry '
        'that name',
        fixed=True,
    )
    ingest: IngestRules = part(IngestRules)
    tick: TickConfig = part(TickConfig)
    blend_s: float = setting(
        0.1,
        'Longest fade from one chunk to the next',
        's',
        low=0.0,
        high=5.0,
        name='actuation.blend_s',
    )
    controller_manager: str = setting(
        '',
        'Name of the controller_manager to ask whether the controllers of the command topics are '
        'active; empty: do not ask',
        name='actuation.controller_manager',
    )
    group_settings: GroupSettings = part(GroupSettings)
    limit_settings: LimitSettings = part(LimitSettings)
    realtime: RealtimeSettings = part(RealtimeSettings)
    diagnostics: ActuationLimits = part(ActuationLimits)
    diagnostics_rate_hz: float = setting(
        1.0,
        'Messages on /diagnostics per second; 0: off',
        'Hz',
        low=0.0,
        high=10.0,
        live=True,
        name='diagnostics.rate_hz',
    )

    def __post_init__(self) -> None:
        check(self)

    @property
    def groups(self) -> tuple[ActuatorGroup, ...]:
        """The command topics."""
        return self.group_settings.groups

    @property
    def limits(self) -> JointLimits:
        """The limits of the joints, as far as parameters say them."""
        return self.limit_settings.limits

    def ticks_like(self, other: TickSettings) -> bool:
        """Return whether the tick and its limits are the same."""
        return self.tick == other.tick and self.limits.equals(other.limits)


TICK_SETTINGS: Mapping[str, Setting] = all_settings(TickSettings)
"""The parameters of a tick in a process of its own."""


def tick_parts(values: Mapping[str, object]) -> dict[str, Any]:
    """Return the parts of `TickSettings` that have to know the joints.

    :raises SettingError: names the parameter, what was expected and what came.
    """
    joints = read(TickSettings, 'joints', values)
    limits = make(LimitSettings, values, joints=joints)
    return {
        'joints': joints,
        'group_settings': make(GroupSettings, values, joints=joints),
        'limit_settings': limits,
        'tick': make(
            TickConfig, values, num_joints=len(joints), awaits_limits=limits.awaits_description
        ),
    }


def make_tick_settings(values: Mapping[str, object]) -> TickSettings:
    """Make the settings of a tick in a process of its own; what is not given has its default.

    :raises SettingError: names the parameter, what was expected and what came.
    """
    settings = make(TickSettings, values, **tick_parts(values))
    interval_s = min(settings.realtime.switch_interval_s, _OWN_SWITCH_INTERVAL_S)
    return replace(settings, realtime=replace(settings.realtime, switch_interval_s=interval_s))
