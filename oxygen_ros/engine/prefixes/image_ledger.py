# SPDX-License-Identifier: Apache-2.0
"""Which encoded images were read: the proof that nothing is encoded for nothing."""

from __future__ import annotations

from ...types import Observation

_KEPT = 256  # images that may still be read; far more than all live prefixes hold


class ImageLedger:
    """Tracks each image from the vision tower to its first reader.

    An image is read when a result made from a prefix that holds it is given out. One that leaves
    the ledger unread was superseded: encoded, but replaced by a newer observation before any task
    came to read it.
    """

    def __init__(self) -> None:
        self._unread: dict[tuple[str, int], None] = {}  # insertion order: oldest first
        self._dropped = 0

    def encoded(self, key: tuple[str, int]) -> None:
        """Note an image that went through the vision tower."""
        self._unread[key] = None
        if len(self._unread) > _KEPT:
            del self._unread[next(iter(self._unread))]
            self._dropped += 1

    def read(self, observation_frames: tuple[tuple[str, int], ...]) -> None:
        """Note that a result read these images."""
        for key in observation_frames:
            self._unread.pop(key, None)

    def read_observation(self, observation: Observation) -> None:
        """Note that a result read all images of an observation."""
        self.read(tuple(frame.key for frame in observation.frames))

    @property
    def num_superseded(self) -> int:
        """Images encoded and not read so far; final once the engine has stopped."""
        return self._dropped + len(self._unread)

    def reset(self) -> None:
        """Start again from zero."""
        self._unread.clear()
        self._dropped = 0
