# SPDX-License-Identifier: Apache-2.0
"""What the benchmark measures: a model, and the robot that it is made for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..engine.model import VLAModel
from ..models.binding import check_binding
from ..models.checkpoint import read_folder
from ..models.options import ModelOptions
from ..models.registry import create_model


@dataclass(frozen=True, slots=True)
class Subject:
    """A model by name or by the folder of a checkpoint, with its cameras and joints."""

    model: str
    cameras: tuple[str, ...]
    joints: tuple[str, ...]
    is_checkpoint: bool = False

    def create(self) -> VLAModel:
        """Build the model, as the node will."""
        options = ModelOptions(num_cameras=len(self.cameras))
        if not self.is_checkpoint:
            options = replace(options, num_joints=len(self.joints))
        return create_model(self.model, options)

    def parameters(self) -> dict[str, Any]:
        """Return it as parameters of the node."""
        name = 'model.checkpoint' if self.is_checkpoint else 'model.name'
        return {name: self.model, 'cameras': list(self.cameras), 'joints': list(self.joints)}


TINY = Subject(
    'tiny', ('front', 'left', 'right', 'top'), tuple(f'joint_{index}' for index in range(7))
)


def checkpoint_subject(folder: Path) -> Subject:
    """Return a checkpoint with a robot of its own cameras and as many joints as it moves.

    :raises CheckpointError: the folder cannot be used.
    """
    _, _, config = read_folder(folder)
    joints = tuple(f'joint_{index}' for index in range(config.action_dim))
    check_binding(config, None, config.cameras, {}, len(joints))
    return Subject(str(folder.resolve()), config.cameras, joints, is_checkpoint=True)
