# SPDX-License-Identifier: Apache-2.0
"""The thread that writes memory and accounts to disk, so that no other thread waits for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
import threading
import time

from ..memory.audit.audit_chain import AuditRecord
from ..memory.audit.audit_log import AuditLog
from ..memory.episodes.records import Note
from ..memory.episodes.store import EpisodicStore
from ..memory.writing import WriterStatus
from .drop_queue import DropQueue
from .memory_sinks import (
    AuditTarget,
    BATCH,
    note_kind,
    note_priority,
    NUM_PRIORITIES,
    record_priority,
    Sink,
    StoreTarget,
)

NEVER_ON = ('oxygen_engine', 'oxygen_tick')  # names of threads that must not be kept
IDLE_S = 0.25  # the longest sleep, so that syncs that are due are not late
# What comes within this time shares a transaction: fewer turns of this thread, which would take
# the interpreter from the others.
GATHER_S = 0.1


class MemoryWriter:
    """Owns the writer thread. `put` and `status` may be called by any thread and never wait.

    A disk that is full, read-only or gone stops no one: the queues fill, then drop by priority
    and count; the writer tries again, at most every few seconds, and goes on where it was. The
    store's queue and the audit log's are apart, so that trouble with one costs the other nothing.

    :param open_store: opens the store, on the writer thread; is given the run to go on with when
        it opens it again. None: nothing is remembered on disk.
    :param open_audit: opens the audit log, on the writer thread; None: none is kept.
    :param max_notes: notes that may wait.
    :param max_records: audit records that may wait.
    :param retry_s: the first and the longest wait after a failure.
    """

    def __init__(
        self,
        open_store: Callable[[int | None], EpisodicStore] | None,
        open_audit: Callable[[], AuditLog] | None,
        *,
        max_notes: int = 2_048,
        max_records: int = 8_192,
        retry_s: tuple[float, float] = (0.25, 5.0),
    ) -> None:
        self._open_store = open_store
        self._open_audit = open_audit
        self._run: int | None = None
        self._log: AuditLog | None = None
        self._told: Counter[str] = Counter()
        self._notes: DropQueue[Note] = DropQueue(max_notes, NUM_PRIORITIES)
        self._records: DropQueue[AuditRecord] = DropQueue(max_records, NUM_PRIORITIES)
        self._store_sink = Sink[Note](self._notes, self._store_target, time.monotonic, retry_s)
        self._audit_sink = Sink[AuditRecord](
            self._records, self._audit_target, time.monotonic, retry_s
        )
        self._sinks: list[Sink[Note] | Sink[AuditRecord]] = []
        if open_audit is not None:
            self._sinks.append(self._audit_sink)
        if open_store is not None:
            self._sinks.append(self._store_sink)
        self._wake = threading.Event()
        self._hurry = threading.Event()  # there is no time, or enough, to gather more
        self._stopping = False
        self._drain_until_s = 0.0
        self._thread = threading.Thread(target=self._work, name='memory_writer', daemon=True)
        self._owner = self._thread  # who may write

    def _store_target(self) -> StoreTarget:
        assert self._open_store is not None
        assert threading.current_thread() is self._owner
        store = self._open_store(self._run)
        self._run = store.run
        return StoreTarget(store)

    def _audit_target(self) -> AuditTarget:
        assert self._open_audit is not None
        assert threading.current_thread() is self._owner
        self._log = self._open_audit()
        return AuditTarget(self._log, self._records.dropped, self._told)

    def start(self) -> None:
        """Start the thread; once."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Write what waits, as far as the time allows, and end; False where something was left."""
        self._drain_until_s = time.monotonic() + timeout_s
        self._stopping = True
        self._wake.set()
        self._hurry.set()
        self._thread.join(timeout_s + IDLE_S)
        return not self._thread.is_alive() and not any(sink.num_waiting for sink in self._sinks)

    def put(self, item: Note | AuditRecord) -> bool:
        """Take something to write; False where it was dropped at once or nothing is configured."""
        assert threading.current_thread().name not in NEVER_ON, (
            "expected the owner's thread, got that of the engine or the tick"
        )
        if isinstance(item, AuditRecord):
            taken = self._open_audit is not None and self._records.put(
                item, record_priority(item), item.kind
            )
        else:
            taken = self._open_store is not None and self._notes.put(
                item, note_priority(item), note_kind(item)
            )
        if max(len(self._notes), len(self._records)) >= BATCH:
            self._hurry.set()
        self._wake.set()
        return taken

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything taken so far is written; False when the time ran out."""
        deadline_s = time.monotonic() + timeout_s
        while any(sink.num_waiting for sink in self._sinks):
            self._hurry.set()
            if time.monotonic() > deadline_s:
                return False
            time.sleep(0.001)
        return True

    def status(self) -> WriterStatus:
        """Return how writing goes."""
        log = self._log
        return WriterStatus(
            self._store_sink.status() if self._open_store else None,
            self._audit_sink.status() if self._open_audit else None,
            log.head if log else None,
        )

    def _work(self) -> None:
        while not self._stopping or (
            any(sink.num_waiting for sink in self._sinks)
            and time.monotonic() < self._drain_until_s
        ):
            self._wake.clear()
            busy = False
            for sink in self._sinks:
                busy = sink.step() or busy
            if not busy:
                waits_s = [sink.wait_s for sink in self._sinks if sink.wait_s]
                if self._wake.wait(min([IDLE_S, *waits_s])):
                    self._hurry.wait(GATHER_S)
                    if not self._stopping:
                        self._hurry.clear()
        for sink in self._sinks:
            sink.close()


class DirectWriter(MemoryWriter):
    """Writes at once, in the thread that puts: a replay repeats exactly, and reads what it wrote.

    An item that cannot be written now is tried again with the next one.
    """

    def start(self) -> None:
        """Nothing is to be started."""
        self._owner = threading.current_thread()

    def put(self, item: Note | AuditRecord) -> bool:
        """Write something; False where it was dropped or nothing is configured."""
        taken = super().put(item)
        for sink in self._sinks:
            while sink.step():
                pass
        return taken

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Close what was written to; False where something was left."""
        del timeout_s
        for sink in self._sinks:
            sink.close()
        return not any(sink.num_waiting for sink in self._sinks)
