# SPDX-License-Identifier: Apache-2.0
"""How a checkpoint's cameras and joints and those of the demo's source find each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..models.binding import check_binding, parse_camera_map
from ..models.checkpoint import read_folder


class CheckpointInputs:
    """What a checkpoint expects of a robot; read without its weights.

    :raises CheckpointError: the folder cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        _, _, self._config = read_folder(folder)
        self.cameras = self._config.cameras  # keys, in the model's order
        self.joints = tuple(f'joint_{index}' for index in range(self._config.action_dim))

    def bind(
        self, cameras: Sequence[str], joints: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a recording's cameras in the model's order, and their camera=key pairs.

        By name where every name is a key, else one after the other.

        :raises CheckpointError: lists what does not fit.
        """
        if set(cameras) <= set(self.cameras):
            chosen, pairs = sorted(cameras, key=self.cameras.index), []
        else:
            chosen = list(cameras[: len(self.cameras)])
            pairs = [f'{camera}={key}' for camera, key in zip(chosen, self.cameras)]
        check_binding(self._config, None, chosen, parse_camera_map(pairs), len(joints))
        return tuple(chosen), tuple(pairs)
