# SPDX-License-Identifier: Apache-2.0
"""Which camera and which joints of the robot stand for which input of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .config_file import IMAGE_PREFIX
from .errors import CheckpointError
from .processing import Processing
from .vla_config import VLAConfig


def parse_camera_map(pairs: Sequence[str]) -> dict[str, str]:
    """Read 'camera=key' pairs, the form of a list parameter.

    :raises CheckpointError: a pair is none, or names a camera twice.
    """
    result: dict[str, str] = {}
    for pair in pairs:
        camera, separator, key = pair.partition('=')
        if not separator or not camera or not key or camera in result:
            raise CheckpointError(
                f"camera_map: expected 'camera=key' pairs, each camera once, got {pair!r}"
            )
        result[camera] = key
    return result


def check_binding(
    config: VLAConfig,
    processing: Processing | None,
    cameras: Sequence[str],
    camera_map: Mapping[str, str],
    num_joints: int,
) -> None:
    """Refuse a robot that is not the model's, with all that differs in one error.

    A camera is bound by `camera_map`, else by the checkpoint's own renaming of its training data,
    else by its name. Cameras may be absent, but not in another order.

    :param cameras: of the robot, in the order in which observations hold them.
    :raises CheckpointError: lists every mismatch.
    """
    renames = {} if processing is None else processing.renames
    problems = []
    positions = []
    for camera in cameras:
        renamed = renames.get(f'{IMAGE_PREFIX}{camera}', camera).removeprefix(IMAGE_PREFIX)
        key = camera_map.get(camera, renamed)
        if key in config.cameras:
            positions.append(config.cameras.index(key))
        else:
            problems.append(
                f'camera {camera}: expected one of {", ".join(config.cameras)}, '
                f'got {key}; bind it with camera_map'
            )
    unused = sorted(set(camera_map) - set(cameras)) if cameras else []
    problems += [
        f'camera_map: expected a camera of {", ".join(cameras)}, got {name}' for name in unused
    ]
    if len(set(positions)) != len(positions):
        problems.append('cameras: expected each key of the model once, got one twice')
    elif positions != sorted(positions):
        order = [cameras[at] for at in sorted(range(len(positions)), key=positions.__getitem__)]
        problems.append(
            f"cameras: expected the model's order {', '.join(order)}, got {', '.join(cameras)}"
        )
    for name, dim in (('state', config.state_dim), ('action', config.action_dim)):
        if dim != num_joints:
            problems.append(f'joints: expected {dim} for the {name}, got {num_joints}')
    if problems:
        raise CheckpointError('the checkpoint does not fit this robot: ' + '; '.join(problems))
