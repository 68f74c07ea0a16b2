# SPDX-License-Identifier: Apache-2.0
"""What the engine has done: plain counts, and which images were encoded for nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from ..types import Observation
from .scheduling.work import UnitKind

_KEPT = 256  # images that may still be read; far more than all live prefixes hold


@dataclass(slots=True)
class Counters:
    """Counts since construction; only the thread that owns the engine writes."""

    units: Counter[UnitKind] = field(default_factory=Counter)  # units that ran, by kind
    images_encoded: int = 0  # images through the vision tower
    images_reused: int = 0  # images whose features were kept from the last observation
    prefills: int = 0  # prefixes built
    action_passes: int = 0
    decode_steps: int = 0
    decode_rows: int = 0  # rows of all decode steps together
    text_tokens: int = 0  # of all answers
    forced_tokens: int = 0  # of these, not sampled but forced by a grammar
    tokens_recomputed: int = 0  # prompt and text tokens prefilled again after memory was exhausted
    dense_reads: int = 0  # prefixes read by query vectors
    preemptions: int = 0  # text requests that gave back their blocks
    requests_started: int = 0
    requests_ended: int = 0
    requests_refused: int = 0
    observations_started: int = 0

    def reset(self) -> None:
        """Start again from zero."""
        for item in fields(self):
            setattr(self, item.name, Counter() if item.name == 'units' else 0)


class ImageLedger:
    """Tracks each image from the vision tower to its first reader: nothing is encoded for nothing.

    An image is read when a result made from a prefix that holds it is published. One that leaves
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
