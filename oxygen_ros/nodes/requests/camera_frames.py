# SPDX-License-Identifier: Apache-2.0
"""Where a camera stood when it took an image: by parameters, or by TF where ROS has it."""

from __future__ import annotations

from collections.abc import Mapping
import importlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.time import Time

from ...memory.scene.projection import pose_matrix
from ...robot.memory_settings import PositionSettings


class CameraFrames(Protocol):
    """Gives the pose of a camera's optical frame."""

    def pose(
        self, camera: str, optical_frame: str, stamp_ns: int
    ) -> tuple[NDArray[np.float64] | None, str]:
        """Return [4, 4] from the optical frame to the frame of positions, or None and why."""
        ...

    def destroy(self) -> None:
        """Take all entities back."""
        ...


class FixedFrames:
    """Cameras that stand where the parameters say."""

    def __init__(self, poses: Mapping[str, NDArray[np.float64]]) -> None:
        self._poses = poses

    def pose(
        self, camera: str, optical_frame: str, stamp_ns: int
    ) -> tuple[NDArray[np.float64] | None, str]:
        """Return the pose that was given; see `CameraFrames`."""
        del optical_frame, stamp_ns
        return self._poses[camera], ''

    def destroy(self) -> None:
        """Nothing was taken."""


class TfFrames:
    """Cameras whose frames are on /tf; never waits for a transform.

    :raises ValueError: tf2_ros is not installed (it comes with ROS, not as a wheel).
    """

    def __init__(self, node: Node, frame_id: str) -> None:
        try:
            self._tf2: Any = importlib.import_module('tf2_ros')
        except ImportError as error:
            raise ValueError(
                'memory.camera_poses: expected the poses of the cameras, since '
                f'tf2_ros is not installed to look them up ({error})'
            ) from error
        self._frame_id = frame_id
        self._buffer = self._tf2.Buffer()
        self._listener = self._tf2.TransformListener(self._buffer, node, spin_thread=False)

    def pose(
        self, camera: str, optical_frame: str, stamp_ns: int
    ) -> tuple[NDArray[np.float64] | None, str]:
        """Look the pose up as it was at the image's stamp; see `CameraFrames`."""
        del camera
        try:
            found = self._buffer.lookup_transform(
                self._frame_id,
                optical_frame,
                Time(nanoseconds=stamp_ns, clock_type=ClockType.ROS_TIME),
            ).transform
        except self._tf2.TransformException as error:
            return None, str(error)
        move, turn = found.translation, found.rotation
        return pose_matrix(move.x, move.y, move.z, turn.x, turn.y, turn.z, turn.w), ''

    def destroy(self) -> None:
        """Take the subscriptions back."""
        self._listener.unregister()


def camera_frames(node: Node, settings: PositionSettings) -> CameraFrames:
    """Return the poses of the parameters, or where there are none, of TF.

    :raises ValueError: there are none, and no tf2_ros.
    """
    if settings.camera_poses:
        return FixedFrames(settings.camera_poses)
    return TfFrames(node, settings.frame_id)
