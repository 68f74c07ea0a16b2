# SPDX-License-Identifier: Apache-2.0
"""How the scene is looked at, where its objects are, and what is kept of it all on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..memory.audit.audit_log import AuditRules
from ..memory.episodes.connection import StoreRules
from ..memory.scene.projection import pose_matrix
from ..memory.scene.scene_format import SceneFormat
from ..memory.scene.scene_graph import GraphRules
from ..memory.scene.vocabulary import load_vocabulary, SceneVocabulary
from ..setting import check, make, parameter, part, read, refusal, setting, SettingError

_POSE = 7  # numbers of one: x, y, z and a quaternion
_BY_TF = (0.0,)


@dataclass(frozen=True, slots=True)
class PositionSettings:
    """How the boxes of objects become positions.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'memory'

    cameras: tuple[str, ...]
    frame_id: str = setting(
        '',
        'Frame of object positions, which must not move with a camera; empty: objects have no '
        'position',
    )
    pose_numbers: tuple[float, ...] = setting(
        _BY_TF,
        'Camera poses in that frame: x, y, z (m) and quaternion x, y, z, w of each optical '
        'frame, one after another in the order of cameras; a single 0: look them up in TF',
        'm',
        name='memory.camera_poses',
    )
    depth_cameras: tuple[str, ...] = setting(
        (),
        'Cameras with a depth image on <name>/depth/image_raw that is aligned with their image; '
        'an empty name means none',
        none='',
    )
    has_plane: bool = setting(
        False,
        'Without depth, assume that objects stand on a level plane',
        name='memory.plane',
    )
    height_m: float = setting(
        0.0,
        'Height of that plane in memory.frame_id',
        'm',
        low=-1_000.0,
        high=1_000.0,
        name='memory.plane_height_m',
    )
    # [4, 4] of each camera's optical frame in frame_id; empty: by TF
    camera_poses: Mapping[str, NDArray[np.float64]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, 'camera_poses', self._poses())
        unknown = sorted(set(self.depth_cameras) - set(self.cameras))
        if unknown:
            raise refusal(self, 'depth_cameras', 'names from cameras', unknown)
        asking = [
            parameter(PositionSettings, name)
            for name, is_given in (
                ('pose_numbers', bool(self.camera_poses)),
                ('depth_cameras', bool(self.depth_cameras)),
                ('has_plane', self.has_plane),
            )
            if is_given
        ]
        if asking and not self.frame_id:
            raise refusal(
                self, 'frame_id', f'the frame of the positions that {asking[0]} asks for', 'none'
            )

    def _poses(self) -> dict[str, NDArray[np.float64]]:
        numbers = self.pose_numbers
        if numbers == _BY_TF:
            return {}
        if len(numbers) != _POSE * len(self.cameras):
            raise refusal(
                self,
                'pose_numbers',
                f'{_POSE} numbers for each of the {len(self.cameras)} cameras, or 0 alone',
                len(numbers),
            )
        poses = {}
        for index, camera in enumerate(self.cameras):
            try:
                poses[camera] = pose_matrix(*numbers[_POSE * index : _POSE * (index + 1)])
            except ValueError as error:
                name = parameter(PositionSettings, 'pose_numbers')
                raise SettingError(f'{name}: {camera}: {error}') from error
        return poses

    @property
    def plane_height_m(self) -> float | None:
        """Height of a level plane in frame_id; None: there is none."""
        return self.height_m if self.has_plane else None


@dataclass(frozen=True, kw_only=True)
class MemorySettings:
    """How the scene is looked at and remembered."""

    PREFIX: ClassVar[str] = 'memory'

    period_s: float = setting(
        2.0,
        'Time between two scene-graph updates in the background; 0: only on request',
        's',
        low=0.0,
        high=3600.0,
    )
    prompt: str = setting(
        'List the objects and their relations.', 'Prompt of a scene-graph update'
    )
    vocabulary_file: str = setting(
        '', 'YAML file with labels, attributes and predicates; empty: the built-in words'
    )
    scene_format: SceneFormat = part(SceneFormat)
    rules: GraphRules = part(GraphRules)
    temperature: float = setting(
        1.0,
        'Sampling temperature of an update, each with its own seed; 0: greedy, which gives an '
        'empty graph with random weights',
        low=0.0,
        high=10.0,
    )
    positions: PositionSettings = part(PositionSettings)

    def __post_init__(self) -> None:
        check(self)


def make_memory_settings(values: Mapping[str, object], cameras: tuple[str, ...]) -> MemorySettings:
    """Make the settings of memory; what is not given has its default.

    :raises SettingError: names the parameter or the file, what was expected and what came.
    """
    path = read(MemorySettings, 'vocabulary_file', values)
    try:
        vocabulary = load_vocabulary(path) if path else SceneVocabulary()
    except ValueError as error:
        name = parameter(MemorySettings, 'vocabulary_file')
        raise SettingError(f'{name}: {error}') from error
    try:
        scene_format = make(SceneFormat, values, cameras=cameras, vocabulary=vocabulary)
    except ValueError as error:  # its own errors are of the cameras
        raise SettingError(str(error)) from error
    return make(
        MemorySettings,
        values,
        scene_format=scene_format,
        positions=make(PositionSettings, values, cameras=cameras),
    )


@dataclass(frozen=True, kw_only=True)
class RecordSettings:
    """Store, audit log and facts; an empty path: there is none."""

    PREFIX: ClassVar[str] = 'memory'

    store_file: str = setting(
        '', 'SQLite file for what the robot saw, said and was told; empty: no store'
    )
    store_rules: StoreRules = part(StoreRules)
    recall_tokens: int = setting(
        96,
        'Most tokens of recalled memory in the prompt of a dialogue, if there is a store; 0: none',
        'tokens',
        low=0,
        high=100_000,
    )
    facts_file: str = setting(
        '',
        'YAML file with facts to check answers and objects against; empty: no check',
    )
    audit_folder: str = setting(
        '',
        'Folder for the files of the audit log, audit-*.jsonl; empty: no log',
        name='audit.file',
    )
    audit: AuditRules = part(AuditRules)
    audit_key_file: str = setting(
        '',
        'File with the key for a keyed log (HMAC); empty: plain hashes',
        name='audit.key_file',
    )

    def __post_init__(self) -> None:
        check(self)

    def audit_rules(self, key: bytes | None) -> AuditRules:
        """Return the rules of the log, with its key."""
        return replace(self.audit, key=key)
