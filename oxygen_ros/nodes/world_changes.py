# SPDX-License-Identifier: Apache-2.0
"""What makes the past void: time that jumps, and cameras that see something else."""

from __future__ import annotations

from rclpy.clock import TimeJump
from rclpy.node import Node

from ..runtime.runtime import Runtime
from .faults import FaultLog
from .sensors.inputs import Inputs
from .time_jumps import describe, watch_time


class WorldChanges:
    """Drops what was computed before, and logs why.

    `camera_jumped` and `camera_resized` may be called by any thread.
    """

    def __init__(self, node: Node, runtime: Runtime, faults: FaultLog) -> None:
        self.inputs: Inputs | None = None  # set once they exist
        self._node, self._runtime = node, runtime
        self._handle = watch_time(node, faults.guard('time jump', self._clock_jumped))

    def destroy(self) -> None:
        """Look no longer."""
        self._handle.unregister()

    def camera_jumped(self, camera: str) -> None:
        """Begin anew: a camera's stamps went back."""
        self._reset(f'stamps of {camera} jumped back')

    def camera_resized(self, camera: str) -> None:
        """Drop what was computed from a camera whose images have another size."""
        assert self.inputs is not None
        width, height = self.inputs.ingest.inputs[camera].stream.size or (0, 0)
        self._node.get_logger().warning(
            f'{camera}: images are no longer {width}x{height}: what was computed from them is '
            'dropped',
            throttle_duration_sec=5.0,
        )
        self._runtime.forget_observations()

    def _clock_jumped(self, jump: TimeJump) -> None:
        if self.inputs is not None:
            self.inputs.forget()
        self._reset(describe(jump))

    def _reset(self, cause: str) -> None:
        self._node.get_logger().warning(
            f'{cause}: chunks and images from before are dropped', throttle_duration_sec=5.0
        )
        self._runtime.reset()
