# SPDX-License-Identifier: Apache-2.0
"""Where an object is in space: from its box, the camera's geometry, and depth or a known plane."""

from __future__ import annotations

from dataclasses import dataclass
import math

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
Point = tuple[float, float, float]

_MIN_FORWARD = 1e-6


@dataclass(frozen=True, slots=True)
class CameraGeometry:
    """A pinhole camera and where it stands.

    :raises ValueError: names the field, what was expected and what came.
    """

    fx: float  # px
    fy: float  # px
    cx: float  # px
    cy: float  # px
    frame_from_camera: NDArray[np.float64]  # [4, 4], camera optical frame to the frame of results
    frame_id: str

    def __post_init__(self) -> None:
        if not (
            self.fx > 0.0
            and self.fy > 0.0
            and all(map(math.isfinite, (self.fx, self.fy, self.cx, self.cy)))
        ):
            raise ValueError(
                f'camera: expected focal lengths above 0 and a finite centre, got '
                f'{(self.fx, self.fy, self.cx, self.cy)}'
            )
        if self.frame_from_camera.shape != (4, 4) or not np.isfinite(self.frame_from_camera).all():
            raise ValueError(
                f'frame_from_camera: expected finite [4, 4], got {self.frame_from_camera.shape}'
            )

    def _ray(self, u: float, v: float) -> NDArray[np.float64]:
        """Direction of a pixel in the optical frame (z forward), with z = 1."""
        return np.array([(u - self.cx) / self.fx, (v - self.cy) / self.fy, 1.0])

    def _in_frame(self, point: NDArray[np.float64]) -> Point:
        moved = self.frame_from_camera[:3, :3] @ point + self.frame_from_camera[:3, 3]
        return (float(moved[0]), float(moved[1]), float(moved[2]))


def pose_matrix(
    x: float, y: float, z: float, qx: float, qy: float, qz: float, qw: float
) -> NDArray[np.float64]:
    """Return [4, 4] of a translation (m) and a quaternion, which need not be of unit length.

    :raises ValueError: a number is not finite, or the quaternion is zero.
    """
    norm = math.hypot(qx, qy, qz, qw)
    if not (all(map(math.isfinite, (x, y, z))) and math.isfinite(norm) and norm > 1e-9):
        raise ValueError(
            'pose: expected finite numbers and a quaternion that is not zero, got '
            f'{[x, y, z, qx, qy, qz, qw]}'
        )
    qx, qy, qz, qw = qx / norm, qy / norm, qz / norm, qw / norm
    return np.array(
        [
            [1 - 2 * (qy * qy + qz * qz), 2 * (qx * qy - qz * qw), 2 * (qx * qz + qy * qw), x],
            [2 * (qx * qy + qz * qw), 1 - 2 * (qx * qx + qz * qz), 2 * (qy * qz - qx * qw), y],
            [2 * (qx * qz - qy * qw), 2 * (qy * qz + qx * qw), 1 - 2 * (qx * qx + qy * qy), z],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def position_from_depth(
    box_px: Box, depth: NDArray[np.generic], camera: CameraGeometry, unit_m: float = 1.0
) -> Point | None:
    """Return where the middle of a box is; None where there is no depth in it.

    The depth is the lower quartile of what the middle half of the box holds: the object is in
    front of its background, and single readings are not to be trusted.

    :param box_px: x, y, width, height.
    :param depth: [height, width], along the optical axis; 0 or not finite: none measured.
    :param unit_m: length of one unit of the depth.
    """
    x, y, width, height = box_px
    rows = slice(max(int(y + height / 4), 0), max(math.ceil(y + 3 * height / 4), 0))
    columns = slice(max(int(x + width / 4), 0), max(math.ceil(x + 3 * width / 4), 0))
    inside = depth[rows, columns].astype(np.float64)
    measured = inside[np.isfinite(inside) & (inside > 0.0)]
    if not measured.size:
        return None
    depth_m = float(np.quantile(measured, 0.25)) * unit_m
    return camera._in_frame(camera._ray(x + width / 2, y + height / 2) * depth_m)


def position_on_plane(box_px: Box, camera: CameraGeometry, plane_z_m: float) -> Point | None:
    """Return where the foot of a box stands on a level plane; None where the ray misses it.

    :param box_px: x, y, width, height; its foot is the middle of its lower side.
    :param plane_z_m: height of the plane in the camera geometry's frame.
    """
    x, y, width, height = box_px
    origin = camera.frame_from_camera[:3, 3]
    direction = camera.frame_from_camera[:3, :3] @ camera._ray(x + width / 2, y + height)
    if abs(direction[2]) < _MIN_FORWARD:
        return None
    along = (plane_z_m - origin[2]) / direction[2]
    if along <= _MIN_FORWARD:
        return None  # behind the camera
    point = origin + along * direction
    return (float(point[0]), float(point[1]), float(plane_z_m))
