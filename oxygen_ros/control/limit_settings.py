# SPDX-License-Identifier: Apache-2.0
"""Settings of the joints' limits, and the limits that they make."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
import math
from typing import ClassVar

from ..setting import check, parameter, refusal, setting, SettingError
from .limits import JointLimits
from .robot_description import limits_of_description


class LimitSource(str, Enum):
    """Where limits come from."""

    PARAMETERS = 'parameters'
    ROBOT_DESCRIPTION = 'robot_description'  # as well, of which the tighter one counts


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The limits as a parameter file has them: one value for all joints, or one for each.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'limits'

    joints: tuple[str, ...]
    robot_description: str = setting(
        '',
        'URDF with the joint limits; empty: take it from the latched topic robot_description',
        name='robot_description',
    )
    source: LimitSource = setting(
        LimitSource.PARAMETERS,
        'Where limits come from: only the parameters below, or also robot_description; the '
        'tighter limit counts, and the node holds until the description has come',
    )
    min_position: tuple[float, ...] = setting(
        (-math.inf,), 'Lowest target: one value, or one for each joint', 'rad or m', live=True
    )
    max_position: tuple[float, ...] = setting(
        (math.inf,), 'Highest target: one value, or one for each joint', 'rad or m', live=True
    )
    max_velocity: tuple[float, ...] = setting(
        (2.0,),
        'Highest speed of a target: one value, or one for each joint',
        'rad/s or m/s',
        live=True,
    )
    max_step: tuple[float, ...] = setting(
        (math.inf,),
        'Largest change between two targets: one value, or one for each joint',
        'rad or m',
        live=True,
    )
    max_tracking_error: tuple[float, ...] = setting(
        (math.inf,),
        'Largest distance between joints and last target before the node holds: one value, or '
        'one for each joint',
        'rad or m',
        live=True,
    )
    limits: JointLimits = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, 'limits', self._made())

    def _made(self) -> JointLimits:
        num_joints = len(self.joints)
        given: dict[str, tuple[float, ...] | float] = {}
        for limit in fields(JointLimits):
            values = getattr(self, limit.name)
            if len(values) not in (1, num_joints):
                raise refusal(
                    self,
                    limit.name,
                    f'1 or {num_joints} values, one for each of the joints',
                    len(values),
                )
            given[limit.name] = values[0] if len(values) == 1 else values
        try:
            own = JointLimits.create(num_joints, **given)
        except ValueError as error:
            raise self._of_limit(error) from error
        if self.source is LimitSource.PARAMETERS or not self.robot_description:
            return own
        try:
            described = limits_of_description(self.robot_description, self.joints)
        except ValueError as error:  # which begins with the name of the parameter
            raise SettingError(str(error)) from error
        try:
            return own.tightened(described)
        except ValueError as error:
            raise self._of_limit(error) from error

    def _of_limit(self, error: ValueError) -> SettingError:
        name, _, rest = str(error).partition(':')
        return SettingError(f'{parameter(LimitSettings, name)}:{rest}')

    @property
    def awaits_description(self) -> bool:
        """Whether the robot is still to describe itself."""
        return self.source is LimitSource.ROBOT_DESCRIPTION and not self.robot_description
