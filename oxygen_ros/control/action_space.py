"""What the numbers of a chunk mean, and what is sent to the actuators for them."""
from __future__ import annotations

from enum import Enum

from .limits import ActuationMode


class ActionSpace(str, Enum):
    """The meaning of a chunk's step; one number for each joint."""

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
    """
    Read an action space.

    :param name: `joint_position`, `joint_delta` or `joint_velocity`
    :returns: the space
    :raises ValueError: a space in which the joints cannot be kept safe, or an unknown name
    """
    try:
        return ActionSpace(name)
    except ValueError:
        reason = _REFUSED.get(name, '')
        raise ValueError(
            f'action space: expected {", ".join(space.value for space in ActionSpace)}, '
            f'got {name}{": " if reason else ""}{reason}') from None
