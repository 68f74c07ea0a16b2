# SPDX-License-Identifier: Apache-2.0
"""Where a camera stood when it took an image, by TF where ROS has it."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.time import Time

from ...memory.scene.projection import pose_matrix


class TfPoses:
    """Cameras whose frames are on /tf; never waits for a transform.

    :param frame_id: of the positions.
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
        """Look the pose up as it was at the image's stamp; see `CameraPoses`."""
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
        """Destroy the subscriptions."""
        self._listener.unregister()
