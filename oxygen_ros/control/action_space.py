# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a chunk mean, and what is sent to the actuators for them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from .limits import ActuationMode


class ActionSpace(str, Enum):
    """The meaning of a joint's number in a step of a chunk."""

    JOINT_POSITION = 'joint_position'  # where the joint shall be at the step's time
    JOINT_DELTA = 'joint_delta'  # how far it shall move from the step before to this one
    JOINT_VELOCITY = 'joint_velocity'  # how fast it shall move at the step's time

    @property
    def mode(self) -> ActuationMode:
        """What a target means to the actuators."""
        velocity = self is ActionSpace.JOINT_VELOCITY
        return ActuationMode.VELOCITY if velocity else ActuationMode.POSITION

    @property
    def is_delta(self) -> bool:
        """Whether the tick adds up what the chunk says."""
        return self is ActionSpace.JOINT_DELTA


_REFUSED = {
    'joint_effort': 'an arm cannot be held by effort alone, zero effort drops it',
    'end_effector_pose': 'joints are what is limited, ramped and held; put a node that knows the '
    "arm's kinematics between the policy and this one",
    'end_effector_twist': 'joints are what is limited, ramped and held; put a node that knows the '
    "arm's kinematics between the policy and this one",
}


def parse_action_space(name: str) -> ActionSpace:
    """Read an action space.

    :param name: `joint_position`, `joint_delta` or `joint_velocity`.
    :return: the space.
    :raises ValueError: a space in which the joints cannot be kept safe, or an unknown name.
    """
    try:
        return ActionSpace(name)
    except ValueError:
        reason = _REFUSED.get(name, '')
        raise ValueError(
            f'expected {", ".join(space.value for space in ActionSpace)}, '
            f'got {name}{": " if reason else ""}{reason}'
        ) from None


def parse_action_spaces(
    names: Sequence[str],
    num_joints: int,
) -> tuple[ActuationMode, tuple[bool, ...]]:
    """Read the spaces of all joints, such as changes for an arm and a position for its gripper.

    :param names: one for all joints, or one for each.
    :param num_joints: how many joints there are.
    :return: what is sent, and for each joint whether its numbers are changes; empty: none's are.
    :raises ValueError: their number is wrong, one is refused, or some are sent as velocities only.
    """
    if len(names) not in (1, num_joints):
        raise ValueError(
            f'expected 1 or {num_joints} values, one for each of the joints, got {len(names)}'
        )
    spaces = [parse_action_space(name) for name in names] * (num_joints if len(names) == 1 else 1)
    modes = {space.mode for space in spaces}
    if len(modes) > 1:
        raise ValueError(f'expected joint_velocity for all joints or for none, got {list(names)}')
    deltas = tuple(space.is_delta for space in spaces)
    return modes.pop(), deltas if any(deltas) else ()
