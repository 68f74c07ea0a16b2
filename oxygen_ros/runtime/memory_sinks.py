# SPDX-License-Identifier: Apache-2.0
"""Where the memory writer writes to: the store and the audit log, each with its own trouble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ..memory.audit.audit_chain import AuditRecord
from ..memory.audit.audit_log import AuditLog
from ..memory.episodes.records import ChunkNote, Note, PlaceNote, SceneNote
from ..memory.episodes.store import EpisodicStore
from ..memory.errors import MemoryFault
from ..memory.writing import SinkStatus
from .drop_queue import DropQueue

Item = TypeVar('Item')
BATCH = 32  # items written in one transaction
REOPEN_AFTER = 3  # failures in a row
NUM_PRIORITIES = 4


class Target(Protocol[Item]):
    """What a sink writes to."""

    def write(self, items: list[Item]) -> None:
        """Write all of the items, or raise and write none."""

    def idle(self) -> str:
        """Do what is due without items; return what is wrong, empty if nothing."""

    def close(self) -> None:
        """End writing."""


class StoreTarget:
    """The episodic store as a target."""

    def __init__(self, store: EpisodicStore) -> None:
        self.store = store

    def write(self, items: list[Note]) -> None:
        """Write notes in one transaction."""
        self.store.write(items)

    def idle(self) -> str:
        """Nothing is due."""
        return ''

    def close(self) -> None:
        """Close the store."""
        self.store.close()


class AuditTarget:
    """The audit log as a target; says in the log what is missing from it."""

    def __init__(
        self, log: AuditLog, dropped: Callable[[], Counter[str]], told: Counter[str]
    ) -> None:
        self.log = log
        self._dropped = dropped
        self._told = told

    def write(self, items: list[AuditRecord]) -> None:
        """Append records, after one that counts those dropped since the last time."""
        dropped = self._dropped()
        missing = dropped - self._told
        gap = (
            [
                AuditRecord(
                    'gap', items[0].stamp_ns, {'dropped': dict(missing)}, context=items[0].context
                )
            ]
            if missing
            else []
        )
        self.log.append([*gap, *items])
        self._told.update(missing)

    def idle(self) -> str:
        """Sync when it is due."""
        self.log.tick()
        return self.log.sync_fault

    def close(self) -> None:
        """Append the closing record."""
        self.log.close()


class Sink(Generic[Item]):
    """A queue and what it is written to. All but `put` and `status` belong to one thread.

    :param open_target: opens or opens again what is written to.
    """

    def __init__(
        self,
        queue: DropQueue[Item],
        open_target: Callable[[], Target[Item]],
        steady_s: Callable[[], float],
        retry_s: tuple[float, float],
    ) -> None:
        self.queue = queue
        self._open_target = open_target
        self._target: Target[Item] | None = None
        self._steady_s = steady_s
        self._first_retry_s, self._last_retry_s = retry_s
        self._pending: list[Item] = []  # taken from the queue and not yet written
        self._num_failures = 0
        self._due_s = 0.0  # not before
        self._fault = self._rejection = ''
        self._num_written = self._num_rejected = 0

    @property
    def num_waiting(self) -> int:
        """Items that are not yet written."""
        return self.queue.num_accepted - self._num_written - self._num_rejected

    @property
    def wait_s(self) -> float:
        """Time until another attempt is allowed; 0: now."""
        return max(self._due_s - self._steady_s(), 0.0)

    def step(self) -> bool:
        """Write one batch; False when there was nothing to do or it failed."""
        if self.wait_s:
            return False
        try:
            if self._target is None:
                self._target = self._open_target()
            self._fault = self._target.idle()
            if not self._pending:
                self._pending = self.queue.take(BATCH)
            if not self._pending:
                return False
            self._write(self._target)
        except (MemoryFault, OSError) as fault:
            self._fail(str(fault))
            return False
        self._num_failures = 0
        return True

    def _write(self, target: Target[Item]) -> None:
        # After a failure one by one: what is too much for the room there is may fit in parts.
        num = 1 if self._num_failures else len(self._pending)
        try:
            target.write(self._pending[:num])
            self._num_written += num
            del self._pending[:num]
        except (MemoryFault, OSError):
            raise
        except Exception:  # noqa: B902, BLE001 alone, each shows whether it is the bad one
            while self._pending:
                self._write_first(target)

    def _write_first(self, target: Target[Item]) -> None:
        try:
            target.write(self._pending[:1])
            self._num_written += 1
        except (MemoryFault, OSError):
            raise
        except Exception as error:  # noqa: B902, BLE001 it must not keep back the others
            self._num_rejected += 1
            self._rejection = f'{type(error).__name__}: {error}'
        del self._pending[0]

    def _fail(self, fault: str) -> None:
        self._fault = fault
        self._num_failures += 1
        delay_s = min(
            self._first_retry_s * 2 ** min(self._num_failures - 1, 16), self._last_retry_s
        )
        self._due_s = self._steady_s() + delay_s
        if self._num_failures % REOPEN_AFTER == 0:
            self.close()

    def close(self) -> None:
        """End writing; `step` opens the target again."""
        target, self._target = self._target, None
        if target is not None:
            try:
                target.close()
            except MemoryFault as fault:
                self._fault = str(fault)

    def status(self) -> SinkStatus:
        """Return how writing goes; any thread may ask."""
        return SinkStatus(
            not self._fault,
            self._fault,
            self.num_waiting,
            self._num_written,
            self._num_rejected,
            self._rejection,
            dict(self.queue.dropped()),
        )


def note_priority(note: Note) -> int:
    """Chunk summaries go first when room is short, then places, then scenes, then words."""
    if isinstance(note, ChunkNote):
        return 0
    if isinstance(note, PlaceNote):
        return 1
    return 2 if isinstance(note, SceneNote) else 3


def note_kind(note: Note) -> str:
    """Under what a dropped note is counted."""
    return type(note).__name__.removesuffix('Note').lower()


def record_priority(record: AuditRecord) -> int:
    """Chunks go first when room is short, then scenes, then words, then what was decided."""
    return {'chunk': 0, 'scene': 1, 'utterance': 2}.get(record.kind, 3)
