# SPDX-License-Identifier: Apache-2.0
"""Which joints go to which command topic, and in which form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import re
from typing import ClassVar

from ..setting import check, parameter, refusal, setting

INTERFACES = ('trajectory', 'commands')
_TOPICS = {'trajectory': 'joint_trajectory', 'commands': 'commands'}
# What ROS takes for a topic, without its substitutions in braces.
_TOPIC = re.compile(r'(~(/|\Z)|/)?([A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*)?')


def is_topic(name: str) -> bool:
    """Return whether ROS takes a name for a topic, relative, private or absolute."""
    return name not in ('', '/', '~/') and _TOPIC.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class ActuatorGroup:
    """One command topic."""

    joints: tuple[str, ...]
    indices: tuple[int, ...]  # of the joints in a target
    topic: str  # '~' at its beginning stands for the engine's node
    interface: str  # trajectory: JointTrajectory; commands: Float64MultiArray in the joints' order


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The groups as a parameter file has them; without any, all joints form one.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'actuation'

    joints: tuple[str, ...]
    names: tuple[str, ...] = setting(
        (),
        'Names of the command topics, such as two arms and two grippers; none: all joints on '
        '~/joint_trajectory',
        none='',
        name='actuation.groups',
    )
    joint_groups: tuple[str, ...] = setting(
        ('',), 'The group of each joint, in the order of joints'
    )
    group_topics: tuple[str, ...] = setting(
        ('',),
        'The topic of each group; an empty one means ~/<group>/joint_trajectory or '
        '~/<group>/commands',
    )
    group_interfaces: tuple[str, ...] = setting(
        ('',),
        'What each group sends: trajectory (JointTrajectory, the default) or commands '
        '(Float64MultiArray)',
    )
    groups: tuple[ActuatorGroup, ...] = field(init=False)

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, 'groups', self._made())

    def _made(self) -> tuple[ActuatorGroup, ...]:
        if not self.names:
            indices = tuple(range(len(self.joints)))
            return (ActuatorGroup(self.joints, indices, '~/joint_trajectory', 'trajectory'),)
        interfaces = self._one_each('group_interfaces', 'trajectory')
        topics = self._one_each('group_topics', '')
        if len(self.joint_groups) != len(self.joints):
            raise refusal(
                self,
                'joint_groups',
                f'{len(self.joints)} values, one for each of the joints',
                len(self.joint_groups),
            )
        unknown = sorted(set(self.joint_groups) - set(self.names))
        if unknown:
            raise refusal(
                self, 'joint_groups', f'names from {parameter(GroupSettings, "names")}', unknown
            )
        made = tuple(map(self._group, self.names, topics, interfaces))
        used = [group.topic for group in made]
        if len(set(used)) != len(used):
            raise refusal(self, 'group_topics', 'different topics', used)
        return made

    def _group(self, name: str, topic: str, interface: str) -> ActuatorGroup:
        if interface not in INTERFACES:
            raise refusal(
                self, 'group_interfaces', f'one of {", ".join(INTERFACES)}', repr(interface)
            )
        indices = tuple(index for index, group in enumerate(self.joint_groups) if group == name)
        if not indices:
            raise refusal(self, 'joint_groups', f'at least one joint of {name}', 'none')
        topic = topic or f'~/{name}/{_TOPICS[interface]}'
        if not is_topic(topic):
            raise refusal(self, 'group_topics', 'names of topics', repr(topic))
        return ActuatorGroup(
            tuple(self.joints[index] for index in indices), indices, topic, interface
        )

    def _one_each(self, field_name: str, default: str) -> Sequence[str]:
        """Return one value for each group; one empty name alone is all defaults."""
        values: tuple[str, ...] = getattr(self, field_name)
        if values == ('',):
            return [default] * len(self.names)
        if len(values) != len(self.names):
            raise refusal(
                self,
                field_name,
                f'{len(self.names)} values, one for each of {parameter(GroupSettings, "names")}',
                len(values),
            )
        return [value or default for value in values]
