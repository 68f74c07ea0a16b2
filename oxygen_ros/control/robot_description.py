# SPDX-License-Identifier: Apache-2.0
"""The joints' limits from a URDF, the form in which robots describe themselves."""

from __future__ import annotations

from collections.abc import Sequence
import math
from xml.etree import ElementTree

from .limits import JointLimits

MAX_CHARACTERS = 16_000_000
_MOVABLE = ('revolute', 'prismatic', 'continuous')


def limits_of_description(text: str, joints: Sequence[str]) -> JointLimits:
    """Read position and velocity limits; soft limits of a safety controller count as well.

    :param text: the URDF; one that declares entities or a document type is refused unread, since
        entities can grow without bound.
    :param joints: in the order of a target.
    :return: the limits of the joints; a continuous joint has none of position.
    :raises ValueError: names the joint, what was expected and what came.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f'robot_description: expected at most {MAX_CHARACTERS} characters, got {len(text)}'
        )
    if '<!DOCTYPE' in text or '<!ENTITY' in text:
        raise ValueError('robot_description: expected a URDF, got one with a document type')
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f'robot_description: expected a URDF, got: {error}') from None
    # Joints of transmissions and of ros2_control have the same tag further down.
    found = {joint.get('name'): joint for joint in root.findall('joint')}
    rows = [_joint_limits(name, found.get(name)) for name in joints]
    return JointLimits.create(
        len(joints),
        min_position=[row[0] for row in rows],
        max_position=[row[1] for row in rows],
        max_velocity=[row[2] for row in rows],
    )


def _joint_limits(name: str, joint: ElementTree.Element | None) -> tuple[float, float, float]:
    if joint is None:
        raise ValueError(f'robot_description: expected a joint {name}, got none')
    kind = joint.get('type')
    if kind not in _MOVABLE:
        raise ValueError(
            f'robot_description: joint {name}: expected one that is '
            f'{", ".join(_MOVABLE)}, got {kind}'
        )
    limit = joint.find('limit')
    if limit is None:
        if kind == 'continuous':
            return -math.inf, math.inf, math.inf
        raise ValueError(f'robot_description: joint {name}: expected a limit, got none')
    velocity = _number(name, limit, 'velocity', math.inf)
    if velocity <= 0.0:
        raise ValueError(
            f'robot_description: joint {name}: expected a velocity above 0, got {velocity:g}'
        )
    if kind == 'continuous':
        return -math.inf, math.inf, velocity
    low, high = _number(name, limit, 'lower', 0.0), _number(name, limit, 'upper', 0.0)
    soft = joint.find('safety_controller')
    if soft is not None:
        low = max(low, _number(name, soft, 'soft_lower_limit', low))
        high = min(high, _number(name, soft, 'soft_upper_limit', high))
    if not low < high:
        raise ValueError(
            f'robot_description: joint {name}: expected a lower limit below the '
            f'upper one, got {low:g} and {high:g}'
        )
    return low, high, velocity


def _number(name: str, element: ElementTree.Element, attribute: str, default: float) -> float:
    text = element.get(attribute)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f'robot_description: joint {name}: expected a number as {attribute}, got {text!r}'
        )
    return value
