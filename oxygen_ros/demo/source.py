# SPDX-License-Identifier: Apache-2.0
"""Where the demo's images and joint states come from: a generated scene, or a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import json
from pathlib import Path

from ..errors import OxygenError

_CAMERAS = ('front', 'left_wrist', 'right_wrist')
_JOINTS = tuple(f'joint_{index}' for index in range(7))


@dataclass(frozen=True, slots=True)
class Source:
    """A process that plays the robot, and what the node has to know of it."""

    module: str
    arguments: list[str]
    cameras: tuple[str, ...]
    joints: tuple[str, ...]
    transports: str  # how images come
    camera_map: tuple[str, ...] = ()  # camera=key, where a checkpoint names cameras otherwise


def make_source(bag: Path | None, loop: bool, instruction: str, checkpoint: Path | None) -> Source:
    """Choose a source; one that is generated has the cameras and joints of the model.

    :param checkpoint: folder of the model; None: one that takes any cameras.
    :raises OxygenError: a recording without images or joints, or not of the model's robot.
    """
    if checkpoint is None:
        if bag is not None:
            return _recording(bag, loop)
        return _generated(instruction, _CAMERAS, _JOINTS)
    from .checkpoint import CheckpointInputs

    inputs = CheckpointInputs(checkpoint)
    if bag is None:
        return _generated(instruction, inputs.cameras, inputs.joints)
    recorded = _recording(bag, loop)
    cameras, pairs = inputs.bind(recorded.cameras, recorded.joints)
    return Source(
        recorded.module, recorded.arguments, cameras, recorded.joints, recorded.transports, pairs
    )


def list_argument(name: str, values: Sequence[str]) -> str:
    """Return a list parameter as ROS takes it on the command line."""
    return f'{name}:={json.dumps(list(values))}'


def _generated(instruction: str, cameras: tuple[str, ...], joints: tuple[str, ...]) -> Source:
    arguments = [
        '--ros-args',
        '-p',
        list_argument('cameras', cameras),
        '-p',
        f'num_joints:={len(joints)}',
        '-p',
        f'instruction:={json.dumps(instruction)}',
    ]
    return Source('oxygen_ros.nodes.sources.camera_source', arguments, cameras, joints, 'raw')


def _recording(path: Path, loop: bool) -> Source:
    from ..replay.bag import open_bag
    from ..replay.layout import discover

    with open_bag(path) as bag:
        layout = discover(bag)
    if not layout.cameras:
        raise OxygenError(f'--bag: expected a recording with images, got none in {path}')
    if not layout.joint_names:
        raise OxygenError(f'--bag: expected a recording with joint states, got none in {path}')
    arguments = [
        '--ros-args',
        '-p',
        f'bag:={path.resolve()}',
        '-p',
        f'loop:={str(loop).lower()}',
    ]
    return Source(
        'oxygen_ros.nodes.sources.bag_player',
        arguments,
        layout.cameras,
        layout.joint_names,
        'auto',
    )
