# SPDX-License-Identifier: Apache-2.0
"""Where the objects of a scene graph are in space, as far as camera_info, depth and poses say."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..memory.scene.projection import (
    CameraGeometry,
    Point,
    position_from_depth,
    position_on_plane,
)
from ..memory.scene.scene_text import ImageSizes, SeenObject, SeenScene
from ..types import Provenance
from .memory_settings import PositionSettings

# An update is about an image of up to some seconds ago, so a few depth images of that time are
# kept, as they came; at most one in so long, and none further off the image's stamp is used.
_DEPTH_EVERY_NS = 150_000_000
_NUM_DEPTH = 32
_MAX_SKEW_NS = 100_000_000
_DEPTH_TYPES = {'16UC1': ('u2', 0.001), 'mono16': ('u2', 0.001), '32FC1': ('f4', 1.0)}


class CameraPoses(Protocol):
    """Gives the pose of a camera's optical frame."""

    def pose(
        self, camera: str, optical_frame: str, stamp_ns: int
    ) -> tuple[NDArray[np.float64] | None, str]:
        """Return [4, 4] from the optical frame to the frame of positions, or None and why."""
        ...


class FixedPoses:
    """Cameras that stand where the parameters say."""

    def __init__(self, poses: Mapping[str, NDArray[np.float64]]) -> None:
        self._poses = poses

    def pose(
        self, camera: str, optical_frame: str, stamp_ns: int
    ) -> tuple[NDArray[np.float64] | None, str]:
        """Return the pose that was given; see `CameraPoses`."""
        del optical_frame, stamp_ns
        return self._poses[camera], ''


def depth_view(message: Any) -> tuple[NDArray[np.generic], float]:
    """Return a depth message's values without a copy, [height, width], and their unit (m).

    :param message: with the fields of a sensor_msgs Image.
    :raises ValueError: names the field, what was expected and what came.
    """
    if message.encoding not in _DEPTH_TYPES:
        raise ValueError(
            f'depth encoding: expected one of {", ".join(_DEPTH_TYPES)}, '
            f'got {message.encoding!r:.40}'
        )
    code, unit_m = _DEPTH_TYPES[message.encoding]
    kind = np.dtype(('>' if message.is_bigendian else '<') + code)
    height, width, step = message.height, message.width, message.step
    data = np.frombuffer(message.data, np.uint8)
    if step < width * kind.itemsize or data.size != height * step or not data.size:
        raise ValueError(
            f'depth data: expected {height} rows of {step} bytes with {width} values '
            f'of {kind.itemsize} bytes, got {data.size} bytes'
        )
    rows = data.reshape(height, step)[:, : width * kind.itemsize]
    return rows.view(kind), unit_m


class ScenePositions:
    """Turns boxes in images into points; belongs to the owner's thread.

    No image ever waits for what is gathered here: without camera_info, a depth image or a pose an
    object has no position, and `problems` says why.

    :param poses: of the cameras in `settings.frame_id`.
    """

    def __init__(self, settings: PositionSettings, poses: CameraPoses) -> None:
        self.problems: dict[str, str] = {}  # by camera, of the newest update
        self._settings = settings
        self._poses = poses
        self._infos: dict[str, Any] = {}
        self._depth: dict[str, deque[tuple[int, Any]]] = {
            camera: deque(maxlen=_NUM_DEPTH) for camera in settings.depth_cameras
        }

    def take_info(self, camera: str, info: Any) -> None:
        """Take a camera's calibration.

        :param info: with the fields of a sensor_msgs CameraInfo.
        """
        self._infos[camera] = info

    def take_depth(self, camera: str, message: Any, stamp_ns: int) -> None:
        """Take a depth image, with the fields of a sensor_msgs Image."""
        kept = self._depth[camera]
        if kept and 0 <= stamp_ns - kept[-1][0] < _DEPTH_EVERY_NS:
            return
        kept.append((stamp_ns, message))

    def locate(self, scene: SeenScene, provenance: Provenance, sizes: ImageSizes) -> SeenScene:
        """Return the scene with the positions that are to be had."""
        stamps_ns = dict(zip(provenance.cameras, provenance.camera_stamps_ns))
        self.problems = {}
        geometries: dict[str, CameraGeometry | None] = {}
        objects = []
        for seen in scene.objects:
            camera = seen.camera
            if camera not in stamps_ns or camera not in sizes:
                objects.append(seen)
                continue
            if camera not in geometries:
                geometries[camera] = self._geometry(camera, stamps_ns[camera], sizes[camera])
            geometry = geometries[camera]
            point = (
                None
                if geometry is None
                else self._point(seen, geometry, stamps_ns[camera], sizes[camera])
            )
            objects.append(
                seen
                if point is None
                else replace(seen, position_m=point, frame_id=self._settings.frame_id)
            )
        return replace(scene, objects=tuple(objects))

    def _geometry(
        self, camera: str, stamp_ns: int, size: tuple[int, int]
    ) -> CameraGeometry | None:
        info = self._infos.get(camera)
        if info is None:
            self.problems[camera] = 'no camera_info'
            return None
        pose, problem = self._poses.pose(camera, info.header.frame_id, stamp_ns)
        if pose is None:
            self.problems[camera] = problem
            return None
        # Calibrated at another resolution than that of the images: a pixel is as much smaller.
        across = size[0] / info.width if info.width else 1.0
        down = size[1] / info.height if info.height else 1.0
        try:
            return CameraGeometry(
                info.k[0] * across,
                info.k[4] * down,
                info.k[2] * across,
                info.k[5] * down,
                pose,
                self._settings.frame_id,
            )
        except ValueError as error:
            self.problems[camera] = f'camera_info: {error}'
            return None

    def _point(
        self, seen: SeenObject, geometry: CameraGeometry, stamp_ns: int, size: tuple[int, int]
    ) -> Point | None:
        assert seen.box_px is not None
        message = self._depth_at(seen.camera, stamp_ns)
        if message is not None:
            try:
                depth, unit_m = depth_view(message)
            except ValueError as error:
                self.problems[seen.camera] = str(error)
            else:
                found = _from_depth(seen.box_px, geometry, depth, unit_m, size)
                if found is not None:
                    return found
        height_m = self._settings.plane_height_m
        return None if height_m is None else position_on_plane(seen.box_px, geometry, height_m)

    def _depth_at(self, camera: str, stamp_ns: int) -> Any:
        kept = self._depth.get(camera)
        if not kept:
            return None
        nearest_ns, message = min(kept, key=lambda entry: abs(entry[0] - stamp_ns))
        return message if abs(nearest_ns - stamp_ns) <= _MAX_SKEW_NS else None


def _from_depth(
    box_px: tuple[float, float, float, float],
    geometry: CameraGeometry,
    depth: NDArray[np.generic],
    unit_m: float,
    size: tuple[int, int],
) -> Point | None:
    """Look into a depth image that may be of another resolution than the camera's image."""
    across, down = depth.shape[1] / size[0], depth.shape[0] / size[1]
    x, y, width, height = box_px
    scaled = replace(
        geometry,
        fx=geometry.fx * across,
        cx=geometry.cx * across,
        fy=geometry.fy * down,
        cy=geometry.cy * down,
    )
    return position_from_depth(
        (x * across, y * down, width * across, height * down), depth, scaled, unit_m
    )
