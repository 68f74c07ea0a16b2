# SPDX-License-Identifier: Apache-2.0
"""Per-joint limits, and the limiter that no target leaves the tick without passing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
import math
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


@dataclass(frozen=True, slots=True, eq=False)
class JointLimits:
    """Limits of all joints, each [num_joints]; infinite where there is none.

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
        cls,
        num_joints: int,
        *,
        min_position: LimitValue = None,
        max_position: LimitValue = None,
        max_velocity: LimitValue = None,
        max_step: LimitValue = None,
        max_tracking_error: LimitValue = None,
    ) -> JointLimits:
        """Check and complete limits as they are written in a parameter file.

        :param num_joints: how many joints there are, at least 1.
        :param min_position: one value for all joints or one each; NaN, infinity or None: no limit.
        :param max_position: likewise.
        :param max_velocity: likewise, above 0.
        :param max_step: likewise, above 0.
        :param max_tracking_error: likewise, above 0.
        :return: the limits.
        :raises ValueError: names the limit, what was expected and what came.
        """
        if num_joints < 1:
            raise ValueError(f'num_joints: expected at least 1, got {num_joints}')
        limits = cls(
            _complete('min_position', min_position, num_joints, -np.inf),
            _complete('max_position', max_position, num_joints, np.inf),
            _complete('max_velocity', max_velocity, num_joints, np.inf),
            _complete('max_step', max_step, num_joints, np.inf),
            _complete('max_tracking_error', max_tracking_error, num_joints, np.inf),
        )
        for name in ('max_velocity', 'max_step', 'max_tracking_error'):
            values = getattr(limits, name)
            if (values <= 0.0).any():
                raise ValueError(f'{name}: expected above 0, got {values.tolist()}')
        if (limits.min_position > limits.max_position).any():
            raise ValueError(
                f'min_position: expected at most max_position {limits.max_position.tolist()}, '
                f'got {limits.min_position.tolist()}'
            )
        return limits

    @property
    def num_joints(self) -> int:
        """How many joints there are."""
        return len(self.max_step)

    def equals(self, other: JointLimits) -> bool:
        """Return whether all limits are the same."""
        return all(
            np.array_equal(getattr(self, limit.name), getattr(other, limit.name))
            for limit in fields(JointLimits)
        )

    def tightened(self, other: JointLimits) -> JointLimits:
        """Return the tighter of two limits, one by one.

        :param other: of the same joints.
        :return: limits that both allow.
        :raises ValueError: a joint has no position that both allow.
        """
        low = np.maximum(self.min_position, other.min_position)
        high = np.minimum(self.max_position, other.max_position)
        if (low > high).any():
            joint = int(np.argmax(low > high))
            raise ValueError(
                f'min_position: expected at most {high[joint]:g} for joint {joint}, '
                f'as the robot describes itself, got {low[joint]:g}'
            )
        return JointLimits(
            low,
            high,
            np.minimum(self.max_velocity, other.max_velocity),
            np.minimum(self.max_step, other.max_step),
            np.minimum(self.max_tracking_error, other.max_tracking_error),
        )

    def step_bound(self, mode: ActuationMode, period_s: float) -> Float64Array:
        """Return the largest change between consecutive targets.

        :param mode: a velocity limit bounds the step of a position target only.
        :param period_s: the tick's period, in seconds.
        :return: [num_joints], in the target's unit.
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
    """Refuses or bounds a target; pure, so any thread may call it.

    The bound on a step is that of one nominal period, so skipped ticks earn no larger step.
    """

    def __init__(self, limits: JointLimits, mode: ActuationMode, period_s: float) -> None:
        """Prepare the bounds of one period.

        :param limits: of the joints.
        :param mode: what the targets mean.
        :param period_s: the tick's period, in seconds, above 0.
        :raises ValueError: the period is not above 0.
        """
        if not period_s > 0.0:
            raise ValueError(f'period_s: expected above 0, got {period_s}')
        self.limits = limits
        self.mode = mode
        self.period_s = period_s
        self._min_position: list[float] = limits.min_position.tolist()
        self._max_position: list[float] = limits.max_position.tolist()
        self._min_velocity: list[float] = (-limits.max_velocity).tolist()
        self._max_velocity: list[float] = limits.max_velocity.tolist()
        self._max_step: list[float] = limits.step_bound(mode, period_s).tolist()
        self._max_tracking_error: list[float] = limits.max_tracking_error.tolist()

    def apply(
        self,
        target: list[float],
        previous: list[float] | None,
        measured: list[float] | None,
        *,
        check_tracking: bool = True,
    ) -> tuple[list[float] | None, str]:
        """Bound a target, or refuse it.

        :param target: what the chunk asks for, [num_joints].
        :param previous: the last target, [num_joints]; None: there is none to step from.
        :param measured: the joints' positions, [num_joints]; None: not known.
        :param check_tracking: false where the actuators do not follow, such as disarmed.
        :return: the bounded target, [num_joints], and an empty reason; or None and the reason.
        """
        if len(target) != self.limits.num_joints:
            return None, hold_reasons.REFUSED_LENGTH
        if not all(map(math.isfinite, target)):
            return None, hold_reasons.REFUSED_NONFINITE
        if self.mode is ActuationMode.VELOCITY:
            values = _clamp(target, self._min_velocity, self._max_velocity)
            if previous is not None:
                values = self._bound_step(values, previous)
            return values if measured is None else self._keep_inside(values, measured), ''
        if (
            check_tracking
            and previous is not None
            and measured is not None
            and self._lags(previous, measured)
        ):
            return None, hold_reasons.TRACKING_ERROR
        values = _clamp(target, self._min_position, self._max_position)
        return values if previous is None else self._bound_step(values, previous), ''

    def _lags(self, previous: list[float], measured: list[float]) -> bool:
        return any(
            [
                not -bound <= before - now <= bound
                for before, now, bound in zip(previous, measured, self._max_tracking_error)
            ]
        )

    def _bound_step(self, values: list[float], previous: list[float]) -> list[float]:
        return [
            before + step
            if value - before > step
            else before - step
            if before - value > step
            else value
            for value, before, step in zip(values, previous, self._max_step)
        ]

    def _keep_inside(self, values: list[float], measured: list[float]) -> list[float]:
        # No tick may carry a joint out of its limits; coming to rest there may take a larger
        # step than max_step, as the end stop is the harder limit.
        return _clamp(
            values,
            [
                min(low - now, 0.0) / self.period_s
                for low, now in zip(self._min_position, measured)
            ],
            [
                max(high - now, 0.0) / self.period_s
                for high, now in zip(self._max_position, measured)
            ],
        )


def _clamp(values: list[float], low: list[float], high: list[float]) -> list[float]:
    return [
        least if value < least else most if value > most else value
        for value, least, most in zip(values, low, high)
    ]
