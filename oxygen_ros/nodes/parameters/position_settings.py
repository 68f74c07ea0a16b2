# SPDX-License-Identifier: Apache-2.0
"""Where objects are looked for in space, from the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...memory.scene.projection import pose_matrix

_POSE = 7  # numbers of one: x, y, z and a quaternion


@dataclass(frozen=True, slots=True)
class PositionSettings:
    """How the boxes of objects become positions."""

    frame_id: str  # of the positions; empty: objects have none
    # [4, 4] of each camera's optical frame in frame_id; empty: by TF
    camera_poses: Mapping[str, NDArray[np.float64]]
    depth_cameras: tuple[str, ...]
    plane_height_m: float | None  # of a level plane in frame_id; None: there is none


def position_settings(reader: Mapping[str, Any], cameras: Sequence[str]) -> PositionSettings:
    """Read the parameters.

    :raises ValueError: names the parameter, what was expected and what came.
    """
    frame_id = reader['memory.frame_id']
    numbers = list(reader['memory.camera_poses'])
    poses: dict[str, NDArray[np.float64]] = {}
    if numbers != [0.0]:
        if len(numbers) != _POSE * len(cameras):
            raise ValueError(
                f'memory.camera_poses: expected {_POSE} numbers for each of the '
                f'{len(cameras)} cameras, or 0 alone, got {len(numbers)}'
            )
        for index, camera in enumerate(cameras):
            try:
                poses[camera] = pose_matrix(*numbers[_POSE * index : _POSE * (index + 1)])
            except ValueError as error:
                raise ValueError(f'memory.camera_poses: {camera}: {error}') from error
    depth_cameras = tuple(name for name in reader['memory.depth_cameras'] if name)
    unknown = sorted(set(depth_cameras) - set(cameras))
    if unknown:
        raise ValueError(f'memory.depth_cameras: expected names from cameras, got {unknown}')
    if not frame_id and (poses or depth_cameras or reader['memory.plane']):
        raise ValueError(
            'memory.frame_id: expected the frame of the positions that '
            'memory.camera_poses, depth_cameras or plane ask for, got none'
        )
    return PositionSettings(
        frame_id,
        poses,
        depth_cameras,
        reader['memory.plane_height_m'] if reader['memory.plane'] else None,
    )
