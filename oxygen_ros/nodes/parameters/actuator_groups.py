# SPDX-License-Identifier: Apache-2.0
"""Which joints go to which command topic, and in which form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_topic_name import validate_topic_name

from .declare import ParameterError

INTERFACES = ('trajectory', 'commands')
_TOPICS = {'trajectory': 'joint_trajectory', 'commands': 'commands'}


@dataclass(frozen=True, slots=True)
class ActuatorGroup:
    """One command topic."""

    joints: tuple[str, ...]
    indices: tuple[int, ...]  # of the joints in a target
    topic: str  # '~' at its beginning stands for the engine's node
    interface: str  # trajectory: JointTrajectory; commands: Float64MultiArray in the joints' order


def actuator_groups(reader: Mapping[str, Any], joints: Sequence[str]) -> tuple[ActuatorGroup, ...]:
    """Return the groups; without any, all joints form one.

    :raises ParameterError: names the parameter, what was expected and what came.
    """
    groups = [name for name in reader['actuation.groups'] if name]
    if not groups:
        indices = tuple(range(len(joints)))
        return (ActuatorGroup(tuple(joints), indices, '~/joint_trajectory', 'trajectory'),)
    if len(set(groups)) != len(groups):
        raise ParameterError(f'actuation.groups: expected different names, got {groups}')
    interfaces = _one_each(reader, 'group_interfaces', len(groups), 'trajectory')
    topics = _one_each(reader, 'group_topics', len(groups), '')
    group_of_joint = list(reader['actuation.joint_groups'])
    if len(group_of_joint) != len(joints):
        raise ParameterError(
            f'actuation.joint_groups: expected {len(joints)} values, one for each of the joints, '
            f'got {len(group_of_joint)}'
        )
    unknown = sorted(set(group_of_joint) - set(groups))
    if unknown:
        raise ParameterError(
            f'actuation.joint_groups: expected names from actuation.groups, got {unknown}'
        )
    made = []
    for group, topic, interface in zip(groups, topics, interfaces):
        if interface not in INTERFACES:
            raise ParameterError(
                'actuation.group_interfaces: expected one of '
                f'{", ".join(INTERFACES)}, got {interface!r}'
            )
        indices = tuple(index for index, name in enumerate(group_of_joint) if name == group)
        if not indices:
            raise ParameterError(
                f'actuation.joint_groups: expected at least one joint of {group}, got none'
            )
        topic = topic or f'~/{group}/{_TOPICS[interface]}'
        _check_topic(topic)
        made.append(
            ActuatorGroup(tuple(joints[index] for index in indices), indices, topic, interface)
        )
    used = [group.topic for group in made]
    if len(set(used)) != len(used):
        raise ParameterError(f'actuation.group_topics: expected different topics, got {used}')
    return tuple(made)


def _one_each(reader: Mapping[str, Any], name: str, num_groups: int, default: str) -> list[str]:
    """Return a list with one value for each group; a list of one empty name is all defaults."""
    values = list(reader[f'actuation.{name}'])
    if values == ['']:
        return [default] * num_groups
    if len(values) != num_groups:
        raise ParameterError(
            f'actuation.{name}: expected {num_groups} values, one for each of '
            f'actuation.groups, got {len(values)}'
        )
    return [value or default for value in values]


def _check_topic(topic: str) -> None:
    try:
        validate_topic_name(topic)
    except InvalidTopicNameException:
        raise ParameterError(
            f'actuation.group_topics: expected names of topics, got {topic!r}'
        ) from None
