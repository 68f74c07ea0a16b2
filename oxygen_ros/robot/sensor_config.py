# SPDX-License-Identifier: Apache-2.0
"""Settings of the sensors: which cameras make an observation, and how old things may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..control import TickConfig
from ..setting import check, refusal, setting, shared


@dataclass(frozen=True, slots=True)
class SensorConfig:
    """Which cameras make an observation, and how old things may be.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'sensors'

    cameras: tuple[str, ...]  # in the model's order
    optional_cameras: tuple[str, ...] = setting(
        (),
        'Cameras that an observation can do without; an empty name means none',
        none='',
        name='optional_cameras',
    )
    camera_max_age_s: tuple[float, ...] = setting(
        (1.0,),
        'Age of an image beyond which it is not used: one value, or one for each camera',
        's',
        low=0.001,
        high=3600.0,
    )
    state_max_age_s: float = shared(TickConfig, 'state_max_age_s')
    assembly_wait_s: float = setting(
        0.02,
        'Longest wait for the images of the other cameras at one time step',
        's',
        low=0.0,
        high=10.0,
    )
    max_skew_s: float = setting(
        1.0,
        'Largest difference between the image stamps of one observation',
        's',
        low=0.0001,
        high=3600.0,
    )

    def __post_init__(self) -> None:
        check(self)
        if not self.cameras:
            raise ValueError('cameras: expected at least one name, got none')
        if len(set(self.cameras)) != len(self.cameras):
            raise ValueError(f'cameras: expected different names, got {list(self.cameras)}')
        unknown = sorted(set(self.optional_cameras) - set(self.cameras))
        if unknown:
            raise refusal(self, 'optional_cameras', 'names from cameras', unknown)
        if len(self.camera_max_age_s) not in (1, len(self.cameras)):
            raise refusal(
                self,
                'camera_max_age_s',
                f'1 or {len(self.cameras)} values, one for each of the cameras',
                len(self.camera_max_age_s),
            )

    def max_age_s(self, camera: str) -> float:
        """Return the age beyond which a camera's images are not used."""
        ages = self.camera_max_age_s
        return ages[0] if len(ages) == 1 else ages[self.cameras.index(camera)]

    def is_required(self, camera: str) -> bool:
        """Return whether no observation is made without this camera."""
        return camera not in self.optional_cameras
