"""Per-joint limits, and the limiter that no target leaves the tick without passing."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import hold_reasons

Float64Array: TypeAlias = NDArray[np.float64]
LimitValue: TypeAlias = float | Sequence[float] | NDArray[np.floating] | None


class ActuationMode(str, Enum):
    """What a target means to the actuators; effort is refused, as zero effort drops an arm."""

    POSITION = 'position'  # a hold repeats the last target
    VELOCITY = 'velocity'  # a hold is zeros


def parse_mode(name: str) -> ActuationMode:
    """
    Read an actuation mode.

    :param name: `position` or `velocity`
    :returns: the mode
    :raises ValueError: effort, which cannot be held safely, or an unknown name
    """
    if name == 'effort':
        raise ValueError(
            'actuation mode: expected position or velocity, got effort: an arm cannot be held '
            'by effort alone, zero effort drops it')
    try:
        return ActuationMode(name)
    except ValueError:
        raise ValueError(
            f'actuation mode: expected position or velocity, got {name!r}') from None


@dataclass(frozen=True, slots=True, eq=False)
class JointLimits:
    """
    Limits of all joints, each [num_joints]; infinite where there is none.

    `max_step` is the largest change from one target to the next, in the target's own unit, and
    `max_tracking_error` the largest distance between the last target and the measurement.
    """

    min_position: Float64Array  # [num_joints] rad or m
    max_position: Float64Array  # [num_joints] rad or m
    max_velocity: Float64Array  # [num_joints] rad/s or m/s
    max_step: Float64Array  # [num_joints] per tick
    max_tracking_error: Float64Array  # [num_joints] rad or m

    @classmethod
    def create(
        cls, num_joints: int, *, min_position: LimitValue = None, max_position: LimitValue = None,
        max_velocity: LimitValue = None, max_step: LimitValue = None,
        max_tracking_error: LimitValue = None,
    ) -> JointLimits:
        """
        Check and complete limits as they are written in a parameter file.

        :param num_joints: how many joints there are, at least 1
        :param min_position: one value for all joints or one each; NaN, infinity or None: no limit
        :param max_position: likewise
        :param max_velocity: likewise, above 0
        :param max_step: likewise, above 0
        :param max_tracking_error: likewise, above 0
        :returns: the limits
        :raises ValueError: names the limit, what was expected and what came
        """
        if num_joints < 1:
            raise ValueError(f'num_joints: expected at least 1, got {num_joints}')
        limits = cls(
            _complete('min_position', min_position, num_joints, -np.inf),
            _complete('max_position', max_position, num_joints, np.inf),
            _complete('max_velocity', max_velocity, num_joints, np.inf),
            _complete('max_step', max_step, num_joints, np.inf),
            _complete('max_tracking_error', max_tracking_error, num_joints, np.inf))
        for name in ('max_velocity', 'max_step', 'max_tracking_error'):
            values = getattr(limits, name)
            if (values <= 0.0).any():
                raise ValueError(f'{name}: expected above 0, got {values.tolist()}')
        if (limits.min_position > limits.max_position).any():
            raise ValueError(
                f'min_position: expected at most max_position {limits.max_position.tolist()}, '
                f'got {limits.min_position.tolist()}')
        return limits

    @property
    def num_joints(self) -> int:
        """How many joints there are."""
        return len(self.max_step)

    def step_bound(self, mode: ActuationMode, period_s: float) -> Float64Array:
        """
        Return the largest change between consecutive targets.

        :param mode: a velocity limit bounds the step of a position target only
        :param period_s: the tick's period, in seconds
        :returns: [num_joints], in the target's unit
        """
        if mode is ActuationMode.POSITION:
            return np.minimum(self.max_step, self.max_velocity * period_s)
        return self.max_step


def _complete(name: str, value: LimitValue, num_joints: int, none: float) -> Float64Array:
    raw = np.asarray(none if value is None else value, dtype=np.float64)
    if raw.ndim > 1 or (raw.ndim == 1 and raw.shape[0] != num_joints):
        raise ValueError(f'{name}: expected 1 or {num_joints} values, got shape {raw.shape}')
    values = np.where(np.isfinite(raw), raw, none) * np.ones(num_joints)
    values.flags.writeable = False
    return values


class Limiter:
    """
    Refuses or bounds a target; pure, so any thread may call it.

    The bound on a step is that of one nominal period, so skipped ticks earn no larger step.
    """

    def __init__(self, limits: JointLimits, mode: ActuationMode, period_s: float) -> None:
        """
        Prepare the bounds of one period.

        :param limits: of the joints
        :param mode: what the targets mean
        :param period_s: the tick's period, in seconds, above 0
        :raises ValueError: the period is not above 0
        """
        if not period_s > 0.0:
            raise ValueError(f'period_s: expected above 0, got {period_s}')
        self.limits = limits
        self.mode = mode
        self.period_s = period_s
        self.step_bound = limits.step_bound(mode, period_s)
        # What is unlimited everywhere costs nothing in the tick.
        self._bounds = {
            field.name: bool(np.isfinite(getattr(limits, field.name)).any())
            for field in fields(limits)}
        self._has_position = self._bounds['min_position'] or self._bounds['max_position']
        self._has_step = bool(np.isfinite(self.step_bound).any())

    def apply(
        self, target: Float64Array, previous: Float64Array | None,
        measured: Float64Array | None, *, check_tracking: bool = True,
    ) -> tuple[Float64Array | None, str]:
        """
        Bound a target, or refuse it.

        :param target: what the chunk asks for, [num_joints]
        :param previous: the last target, [num_joints]; None: there is none to step from
        :param measured: the joints' positions, [num_joints]; None: not known
        :param check_tracking: false where the actuators do not follow, such as disarmed
        :returns: the bounded target, [num_joints], and an empty reason; or None and the reason
        """
        if target.shape != (self.limits.num_joints,):
            return None, hold_reasons.REFUSED_LENGTH
        if not np.isfinite(target).all():
            return None, hold_reasons.REFUSED_NONFINITE
        if self.mode is ActuationMode.VELOCITY:
            return self._bound_velocity(target, previous, measured), ''
        if (check_tracking and self._bounds['max_tracking_error'] and previous is not None
                and measured is not None
                and (np.abs(previous - measured) > self.limits.max_tracking_error).any()):
            return None, hold_reasons.TRACKING_ERROR
        values = target
        if self._has_position:
            values = np.maximum(values, self.limits.min_position)
            values = np.minimum(values, self.limits.max_position, out=values)
        return self._bound_step(values, previous), ''

    def _bound_step(self, values: Float64Array, previous: Float64Array | None) -> Float64Array:
        if previous is None or not self._has_step:
            return values
        values = np.maximum(values, previous - self.step_bound)
        return np.minimum(values, previous + self.step_bound, out=values)

    def _bound_velocity(
        self, target: Float64Array, previous: Float64Array | None, measured: Float64Array | None,
    ) -> Float64Array:
        limits = self.limits
        values = target
        if self._bounds['max_velocity']:
            values = np.maximum(values, -limits.max_velocity)
            values = np.minimum(values, limits.max_velocity, out=values)
        values = self._bound_step(values, previous)
        if self._has_position and measured is not None:
            # A joint may move out of its limits in no tick; coming to rest there may take a
            # larger step than max_step, as the end stop is the harder limit.
            room_up = np.maximum(limits.max_position - measured, 0.0) / self.period_s
            room_down = np.minimum(limits.min_position - measured, 0.0) / self.period_s
            values = np.minimum(np.maximum(values, room_down), room_up)
        return values
