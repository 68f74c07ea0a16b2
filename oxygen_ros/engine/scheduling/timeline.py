# SPDX-License-Identifier: Apache-2.0
"""What ran when: a ring buffer of slices, action passes and waits, cheap enough to stay on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class EventKind(IntEnum):
    """What an entry of the timeline is."""

    ACTION = 0  # an action pass
    ACTION_WAIT = 1  # from an action's due time, and the end of the one before, to its start
    PREFIX = 2  # a slice of a new prefix
    DIALOGUE = 3  # a slice of dialogue work
    SCENE_GRAPH = 4  # a slice of scene-graph work


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One entry; times on the steady clock."""

    kind: EventKind
    start_ns: int
    end_ns: int
    units: int
    detail: int  # observation id or number of rows


class Timeline:
    """The last `capacity` entries.

    The engine's thread writes; others read a snapshot, which may miss the entry being written.
    """

    def __init__(self, capacity: int = 65536) -> None:
        if capacity < 1:
            raise ValueError(f'timeline capacity: expected at least 1, got {capacity}')
        # Kind, start, end, units, detail. Written to at once: pages that the kernel gives out
        # later would look like a leak for as long as the buffer fills.
        self._rows = np.full((capacity, 5), 0, dtype=np.int64)
        self._written = 0

    def record(self, kind: EventKind, start_ns: int, end_ns: int, units: int, detail: int) -> None:
        """Add one entry, over the oldest when full."""
        self._rows[self._written % len(self._rows)] = (kind, start_ns, end_ns, units, detail)
        self._written += 1

    @property
    def num_written(self) -> int:
        """Entries added since the last `clear`, those that were overwritten too."""
        return self._written

    def clear(self) -> None:
        """Forget all entries."""
        self._written = 0

    def newest(self, num_events: int) -> np.ndarray:
        """Return the last entries, oldest first: at most [num_events, 5] int64, see `snapshot`."""
        written = self._written
        first = max(0, written - min(num_events, len(self._rows)))
        return self._rows[np.arange(first, written) % len(self._rows)]

    def snapshot(self) -> np.ndarray:
        """Return [num_events, 5] int64, oldest first: kind, start, end, units, detail."""
        if self._written <= len(self._rows):
            return self._rows[: self._written].copy()
        first = self._written % len(self._rows)
        return np.concatenate([self._rows[first:], self._rows[:first]])

    def events(self) -> list[TimelineEvent]:
        """Return the snapshot as values."""
        return [
            TimelineEvent(EventKind(kind), start, end, units, detail)
            for kind, start, end, units, detail in self.snapshot().tolist()
        ]

    def durations_ns(self, kind: EventKind, since_ns: int = 0) -> np.ndarray:
        """Return the durations of a kind that ended at or after `since_ns`: [n] int64."""
        rows = self.snapshot()
        rows = rows[(rows[:, 0] == kind) & (rows[:, 2] >= since_ns)]
        durations: np.ndarray = rows[:, 2] - rows[:, 1]
        return durations
