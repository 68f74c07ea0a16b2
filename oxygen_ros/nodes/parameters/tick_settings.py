# SPDX-License-Identifier: Apache-2.0
"""The tick's settings from parameter values, for both nodes that may run it; knows no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ...control import (
    JointLimits,
    limits_of_description,
    parse_action_spaces,
    RealtimeSettings,
    TickConfig,
)
from ...ingest import IngestRules
from ...runtime.tick_loop import TickLoopConfig
from .actuator_groups import actuator_groups, ActuatorGroup
from .declare import ParameterError
from .spec import ParameterSpec, Value
from .table import PARAMETERS

_NAMES = (
    'autostart',
    'engine_node',
    'joints',
    'robot_description',
    'max_observation_age_ms',
    'sensors.state_max_age_s',
    'sensors.future_tolerance_s',
    'diagnostics.rate_hz',
    'diagnostics.max_jitter_p99_ms',
    'diagnostics.max_held_ratio',
)
_GROUPS = ('actuation.', 'limits.', 'realtime.')
# In a process of its own the tick has only the executor's thread beside it, which may as well hand
# over often: in less than the tick spends awake before its deadline, so that none waits for it.
_OWN_SWITCH_INTERVAL_S = 0.0001

TICK_PARAMETERS: tuple[ParameterSpec, ...] = tuple(
    spec for spec in PARAMETERS if spec.name in _NAMES or spec.name.startswith(_GROUPS)
)
"""What a tick in a process of its own has to know."""


@dataclass(frozen=True, slots=True)
class ActuationLimits:
    """Above what actuation is warned of."""

    max_jitter_p99_ms: float
    max_held_ratio: float


@dataclass(frozen=True, slots=True)
class TickSettings:
    """Everything that a tick in a process of its own was told, checked."""

    joints: tuple[str, ...]
    groups: tuple[ActuatorGroup, ...]
    ingest: IngestRules
    loop: TickLoopConfig
    diagnostics: ActuationLimits
    diagnostics_rate_hz: float  # 0: none


def make_tick_settings(values: Mapping[str, Value]) -> TickSettings:
    """Check all values together.

    :raises ParameterError: names the parameter, what was expected and what came.
    """
    reader: Mapping[str, Any] = values
    joints = names(reader, 'joints')
    try:
        realtime = realtime_settings(reader)
        realtime = replace(
            realtime, switch_interval_s=min(realtime.switch_interval_s, _OWN_SWITCH_INTERVAL_S)
        )
        return TickSettings(
            joints=joints,
            groups=actuator_groups(reader, joints),
            ingest=IngestRules(reader['sensors.future_tolerance_s']),
            loop=TickLoopConfig(
                tick=tick_config(reader, len(joints)),
                limits=joint_limits(reader, len(joints)),
                blend_s=reader['actuation.blend_s'],
                realtime=realtime,
            ),
            diagnostics=ActuationLimits(
                reader['diagnostics.max_jitter_p99_ms'], reader['diagnostics.max_held_ratio']
            ),
            diagnostics_rate_hz=reader['diagnostics.rate_hz'],
        )
    except ValueError as error:
        raise parameter_error(error) from error


def parameter_error(error: ValueError) -> ParameterError:
    """Return an error of a part in the words of the parameters."""
    return ParameterError(
        str(error)
        .replace('action space', 'actuation.space')
        .replace(
            'deltas: expected together with mode position and ',
            'actuation.space: joint_delta needs actuation.',
        )
    )


def names(reader: Mapping[str, Any], parameter: str) -> tuple[str, ...]:
    """Return the names of a list, without the empty one that stands for none."""
    found = tuple(name for name in reader[parameter] if name)
    if parameter != 'optional_cameras' and not found:
        raise ParameterError(f'{parameter}: expected at least one name, got none')
    if len(set(found)) != len(found):
        raise ParameterError(f'{parameter}: expected different names, got {list(found)}')
    return found


def tick_config(reader: Mapping[str, Any], num_joints: int) -> TickConfig:
    """Return the settings of the tick."""
    mode, deltas = parse_action_spaces(reader['actuation.space'], num_joints)
    if deltas and reader['actuation.publish'] != 'tick':
        raise ParameterError(
            'actuation.publish: expected tick where actuation.space is '
            f'joint_delta, got {reader["actuation.publish"]}'
        )
    period_ms = 1e3 / reader['actuation.rate_hz']
    if reader['actuation.decide_ahead_ms'] > period_ms / 2:
        raise ParameterError(
            f'actuation.decide_ahead_ms: expected at most half a period ({period_ms / 2:g} ms), '
            f'got {reader["actuation.decide_ahead_ms"]}'
        )
    return TickConfig(
        num_joints=num_joints,
        mode=mode,
        deltas=deltas,
        dry_run=reader['actuation.dry_run'],
        awaits_limits=_from_description(reader) and not reader['robot_description'],
        period_ns=round(1e9 / reader['actuation.rate_hz']),
        max_observation_age_ns=round(reader['max_observation_age_ms'] * 1e6),
        max_state_age_ns=round(reader['sensors.state_max_age_s'] * 1e9),
        activation_ramp_ns=round(reader['actuation.activation_ramp_s'] * 1e9),
        recovery_ramp_ns=round(reader['actuation.recovery_ramp_s'] * 1e9),
        require_state=reader['actuation.require_state'],
        decide_ahead_ns=round(reader['actuation.decide_ahead_ms'] * 1e6),
    )


def joint_limits(reader: Mapping[str, Any], num_joints: int) -> JointLimits:
    """Return the joints' limits; one value stands for all joints.

    Those of a robot_description that comes by parameter are in it; where both know a limit, the
    tighter one counts.
    """
    limits: dict[str, Any] = {}
    for name in ('min_position', 'max_position', 'max_velocity', 'max_step', 'max_tracking_error'):
        values = list(reader[f'limits.{name}'])
        if len(values) not in (1, num_joints):
            raise ParameterError(
                f'limits.{name}: expected 1 or {num_joints} values, one for each '
                f'of the joints, got {len(values)}'
            )
        limits[name] = values[0] if len(values) == 1 else values
    description = reader['robot_description']
    known = (
        limits_of_description(description, names(reader, 'joints'))
        if _from_description(reader) and description
        else None
    )
    try:
        own = JointLimits.create(num_joints, **limits)
        return own if known is None else own.tightened(known)
    except ValueError as error:
        raise ParameterError(f'limits.{error}') from error


def _from_description(reader: Mapping[str, Any]) -> bool:
    return bool(reader['limits.source'] == 'robot_description')


def same_limits(first: JointLimits, second: JointLimits) -> bool:
    """Return whether the joints' limits are the same."""
    return all(
        np.array_equal(getattr(first, limit.name), getattr(second, limit.name))
        for limit in fields(JointLimits)
    )


def realtime_settings(reader: Mapping[str, Any]) -> RealtimeSettings:
    """Return what to ask of the operating system.

    :raises ParameterError: priorities that do not go together.
    """
    values = {name: reader[f'realtime.{name}'] for name in RealtimeSettings.__dataclass_fields__}
    values['cpus'] = tuple(cpu for cpu in values['cpus'] if cpu >= 0)
    try:
        return RealtimeSettings(**values)
    except ValueError as error:
        raise ParameterError(f'realtime.{error}') from error
