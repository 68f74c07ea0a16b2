# SPDX-License-Identifier: Apache-2.0
"""Newest-wins slots for cameras and the robot's state, and observations made of them on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..types import CameraFrame, Observation, RobotState
from .sensor_config import SensorConfig


class SensorHub:
    """The engine's `Sensors`.

    `put_frame`, `drop_frame` and `put_state` may be called by any thread: each swaps one
    reference. `observation` and `state` belong to the engine's thread.

    :param wake: called after each new frame; must return at once.
    """

    def __init__(self, config: SensorConfig, wake: Callable[[], None] = lambda: None) -> None:
        self.config = config
        self.wake = wake
        self.num_frames: dict[str, int] = dict.fromkeys(config.cameras, 0)  # received, by camera
        self.skew_refused = 0
        self.newest_skew = ''  # the last refusal in words
        self._frames: dict[str, CameraFrame | None] = dict.fromkeys(config.cameras, None)
        self._state: RobotState | None = None
        self._used: dict[str, tuple[str, int] | None] = dict.fromkeys(config.cameras, None)
        self._first_new_ns: int | None = None
        self._num_observations = 0
        self._max_age_ns = {
            camera: round(config.max_age_s(camera) * 1e9) for camera in config.cameras
        }
        self._state_max_age_ns = round(config.state_max_age_s * 1e9)
        self._wait_ns = round(config.assembly_wait_s * 1e9)
        self._max_skew_ns = round(config.max_skew_s * 1e9)

    @property
    def num_observations(self) -> int:
        """Observations made since the start; the newest one's id."""
        return self._num_observations

    def put_frame(self, frame: CameraFrame) -> None:
        """Take a camera's newest image."""
        self._frames[frame.camera] = frame
        self.num_frames[frame.camera] += 1
        self.wake()

    def drop_frame(self, camera: str) -> None:
        """Treat a camera as one that has given no image: what it shows is not of now."""
        self._frames[camera] = None

    def put_state(self, state: RobotState) -> None:
        """Take the newest measured state."""
        self._state = state

    def clear(self) -> None:
        """Forget what was received: time jumped."""
        for camera in self._frames:
            self._frames[camera] = None
            self._used[camera] = None
        self._state = None
        self._first_new_ns = None

    def restart(self) -> None:
        """Count from zero: a new activation.

        What was received stays: joints that were measured a moment ago are measured, and what is
        too old is refused by its age.
        """
        for camera in self._used:
            self._used[camera] = None
        self._first_new_ns = None
        self.num_frames = dict.fromkeys(self.config.cameras, 0)
        self.skew_refused = 0
        self.newest_skew = ''
        self._num_observations = 0

    def frame(self, camera: str) -> CameraFrame | None:
        """Return a camera's newest image."""
        return self._frames[camera]

    def newest_state(self) -> RobotState | None:
        """Return the newest measured state, however old."""
        return self._state

    def state(self, now_ns: int) -> RobotState | None:
        """Return the newest state, or None when it is too old to act on."""
        state = self._state
        if state is None or now_ns - state.steady_ns > self._state_max_age_ns:
            return None
        return state

    def observation(self, now_ns: int) -> Observation | None:
        """Return the newest images as one observation, or None: nothing new, or not complete.

        A set is complete when every camera has a new image; after `assembly_wait_s` it is made
        with what there is.
        """
        frames: list[CameraFrame] = []
        num_new = 0
        for camera in self.config.cameras:
            frame = self._fresh(camera, now_ns)
            if frame is None:
                if self.config.is_required(camera):
                    return None
                continue
            frames.append(frame)
            num_new += frame.key != self._used[camera]
        if not num_new:
            return None
        if self._first_new_ns is None:
            self._first_new_ns = now_ns
        if num_new < len(frames) and now_ns - self._first_new_ns < self._wait_ns:
            return None
        if self._is_skewed(frames):
            return None
        for frame in frames:
            self._used[frame.camera] = frame.key
        self._first_new_ns = None
        self._num_observations += 1
        newest = max(frames, key=lambda frame: frame.steady_ns)
        return Observation(
            observation_id=self._num_observations,
            stamp_ns=newest.stamp_ns,
            steady_ns=newest.steady_ns,
            frames=tuple(frames),
            state=self._state,
        )

    def _fresh(self, camera: str, now_ns: int) -> CameraFrame | None:
        frame = self._frames[camera]
        if frame is None or now_ns - frame.steady_ns > self._max_age_ns[camera]:
            return None
        return frame

    def _is_skewed(self, frames: Sequence[CameraFrame]) -> bool:
        oldest = min(frames, key=lambda frame: frame.stamp_ns)
        newest = max(frames, key=lambda frame: frame.stamp_ns)
        skew_ns = newest.stamp_ns - oldest.stamp_ns
        if skew_ns <= self._max_skew_ns:
            return False
        self.skew_refused += 1
        self.newest_skew = f'{oldest.camera} is {skew_ns * 1e-9:.3f} s behind {newest.camera}'
        return True
