# SPDX-License-Identifier: Apache-2.0
"""Where a memory writer under test writes to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import threading
import time

from memory_notes import START

from oxygen_ros.memory.audit.audit_chain import AuditRecord, segment_paths
from oxygen_ros.memory.audit.audit_log import AuditLog, AuditRules
from oxygen_ros.memory.audit.audit_records import find_records
from oxygen_ros.memory.audit.audit_verify import verify
from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryReader
from oxygen_ros.memory.episodes.store import EpisodicStore

RETRY_S = (0.01, 0.02)
TIMEOUT_S = 60.0  # generous: only a fault takes so long


class Place:
    """Where a writer under test writes to."""

    def __init__(self, folder: Path) -> None:
        self.store_path = folder / 'memory.db'
        self.audit_path = folder / 'audit'
        self.threads: set[int] = set()
        self.runs: list[int | None] = []

    def open_store(self, run: int | None) -> EpisodicStore:
        self.threads.add(threading.get_ident())
        self.runs.append(run)
        return EpisodicStore(self.store_path, started_ns=START, resume_run=run)

    def open_audit(self) -> AuditLog:
        self.threads.add(threading.get_ident())
        return AuditLog(self.audit_path, AuditRules(interval_s=0.05))

    def texts(self) -> list[str]:
        reader = MemoryReader(self.store_path)
        try:
            return [entry.text for entry in reader.find(MemoryQuery(limit=100)).entries][::-1]
        finally:
            reader.close()

    def kinds(self) -> list[str]:
        paths = segment_paths(self.audit_path)
        assert verify(paths).is_ok
        return [fields['kind'] for _, fields in find_records(paths)]


def wait_for(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Wait until something holds."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.002)


def event(number: int, kind: str = 'mode') -> AuditRecord:
    """Return a record."""
    return AuditRecord(kind, number, {'number': number})
