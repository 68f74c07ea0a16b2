# SPDX-License-Identifier: Apache-2.0
"""The episodic store: what was seen, said, told and done, in one SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import os
from pathlib import Path
import sqlite3

from ..errors import StoreUnavailable
from ..limits import bounded_name
from .connection import open_writer, StoreRules, translated
from .note_writer import NoteWriter
from .records import EntryKind, Note
from .retention import Retention, RetentionCounts

RETENTION_EVERY = 64  # writes


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What the store holds."""

    num_bytes: int  # of all its files
    max_bytes: int
    num_entries: dict[str, int]  # by kind
    num_observations: int
    retention: RetentionCounts


class EpisodicStore:
    """Writes to the store. Belongs to the thread that made it; SQLite refuses any other.

    Opening starts a run: observation ids count from 1 in each.

    :param started_ns: ROS time now.
    :param resume_run: go on with this run instead, where the store knows it.
    :raises StoreUnavailable: the file cannot be written now.
    :raises StoreDamaged: the file is not ours, of a newer version, or malformed.
    """

    def __init__(
        self,
        path: str | Path,
        rules: StoreRules | None = None,
        *,
        started_ns: int = 0,
        software: str = '',
        resume_run: int | None = None,
    ) -> None:
        self.path = Path(path)
        self.rules = rules or StoreRules()
        self._connection = open_writer(path, self.rules)
        try:
            self._inode = self.path.stat().st_ino
            with translated(path):
                base_ns = self._begin(started_ns, software, resume_run)
        except BaseException:
            self._connection.close()
            raise
        self._notes = NoteWriter(self._connection, self.run, base_ns, self.rules.entry_span_s)
        self._retention = Retention(self._connection, self.rules, self.run)
        self._num_writes = 0

    def _begin(self, started_ns: int, software: str, resume_run: int | None) -> int:
        run = self._connection.execute
        run('BEGIN IMMEDIATE')
        run("INSERT OR IGNORE INTO meta VALUES ('base_ns', ?)", (str(started_ns),))
        base_ns = int(run("SELECT value FROM meta WHERE key = 'base_ns'").fetchone()[0])
        known = run('SELECT id FROM run WHERE id = ?', (resume_run,)).fetchone()
        self.run = int(
            known[0]
            if known
            else run(
                'INSERT INTO run (started_ns, software) VALUES (?, ?)',
                (started_ns, bounded_name(software)),
            ).lastrowid
            or 0
        )
        run('COMMIT')
        return base_ns

    def write(self, notes: Sequence[Note]) -> None:
        """Write notes in one transaction: all of them, or none.

        :raises StoreUnavailable: nothing was written; the same notes may be written later, or, if
            they are more than the file has room for, in parts.
        :raises StoreDamaged: the file is malformed.
        :raises ValueError: one of the notes cannot be stored, whatever the disk.
        """
        self._check_place()
        with translated(self.path):
            try:
                self._write(notes)
            except sqlite3.OperationalError as error:
                if 'full' not in str(error) or not self._can_make_room():
                    raise
                self._write(notes)
            self._num_writes += 1
            if self._num_writes % RETENTION_EVERY == 0 or self._retention.is_due_by_size:
                self._retention.apply()

    def _can_make_room(self) -> bool:
        # Full by our own limit is ours to mend. A full disk is no reason to let go of anything.
        disk = os.statvfs(self.path.parent)
        return (
            disk.f_bavail * disk.f_frsize > self.rules.journal_bytes
            and self._retention.make_room()
        )

    def _check_place(self) -> None:
        # SQLite would go on writing to a file that nobody can find any more.
        try:
            moved = self.path.stat().st_ino != self._inode
        except OSError as error:
            raise StoreUnavailable(f'{self.path}: {error}') from error
        if moved:
            raise StoreUnavailable(f'{self.path}: the file was replaced; open it again')

    def _write(self, notes: Sequence[Note]) -> None:
        before = self._notes.snapshot()
        self._connection.execute('BEGIN IMMEDIATE')
        try:
            for note in notes:
                self._write_note(note)
            self._connection.execute('COMMIT')
        except BaseException:
            self._notes.restore(before)
            if self._connection.in_transaction:
                self._connection.execute('ROLLBACK')
            raise

    def _write_note(self, note: Note) -> None:
        try:
            self._notes.write(note)
        except (
            sqlite3.IntegrityError,
            sqlite3.ProgrammingError,
            sqlite3.DataError,
            OverflowError,
            TypeError,
        ) as error:
            raise ValueError(f'{type(note).__name__}: {error}') from error

    def apply_retention(self) -> None:
        """Let go of what is too old or too much now; `write` does so by itself at times.

        :raises StoreUnavailable: some of it stays for the next time.
        """
        with translated(self.path):
            self._retention.apply()

    def stats(self) -> StoreStats:
        """Return what the store holds.

        :raises StoreUnavailable: the file cannot be read now.
        """
        with translated(self.path):
            entries = {
                EntryKind(kind).name.lower(): num
                for kind, num in self._connection.execute(
                    'SELECT kind, count(*) FROM entry GROUP BY kind'
                )
            }
            observations = self._connection.execute('SELECT count(*) FROM observation').fetchone()
        return StoreStats(
            store_bytes(self.path),
            self.rules.max_bytes,
            entries,
            int(observations[0]),
            self._retention.counts,
        )

    def close(self) -> None:
        """End writing; what was written is then in the main file. May be called twice."""
        try:
            with translated(self.path):
                self._connection.close()
        except StoreUnavailable:
            pass  # the write-ahead log keeps what the main file could not take


def store_bytes(path: str | Path) -> int:
    """Return the size of the store's files together."""
    files = (Path(f'{path}{suffix}') for suffix in ('', '-wal', '-shm'))
    return sum(file.stat().st_size for file in files if file.exists())
