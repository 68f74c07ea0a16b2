# SPDX-License-Identifier: Apache-2.0
"""What the store lets go of, oldest first, to stay within its age and its size.

Age is counted back from the newest entry, not from today: a replayed bag has the time it was
recorded in. Size counts the pages in use; above `HIGH_WATER` of what the file may have, entries
go until `LOW_WATER`: first summaries of action chunks, the most of which nothing else refers to,
then everything by age. An observation goes with the last entry that names it; one that only
carries a place embedding goes when it is older than every entry.
"""

from __future__ import annotations

from dataclasses import dataclass
import sqlite3

from .connection import StoreRules
from .records import EntryKind

HIGH_WATER = 0.9
LOW_WATER = 0.8
BATCH = 500  # entries deleted in one transaction, so that no reader or writer waits long


@dataclass(slots=True)
class RetentionCounts:
    """What was let go since the store was opened."""

    num_by_age: int = 0
    num_by_size: int = 0
    num_observations: int = 0


class Retention:
    """Deletes on the store's writing connection, each batch in a transaction of its own."""

    def __init__(self, connection: sqlite3.Connection, rules: StoreRules, run: int) -> None:
        self.counts = RetentionCounts()
        self._connection = connection
        self._rules = rules
        self._run = run

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f'PRAGMA {name}').fetchone()[0])

    @property
    def used_pages(self) -> int:
        """Pages of the file that hold something."""
        return self._pragma('page_count') - self._pragma('freelist_count')

    @property
    def is_due_by_size(self) -> bool:
        """Whether the file is close to what it may have."""
        return self.used_pages > HIGH_WATER * self._rules.max_pages

    def make_room(self) -> bool:
        """Let go of the oldest because a write found no room; False where there was nothing to do.

        :raises sqlite3.Error: the batch at hand was rolled back, those before it hold.
        """
        before = self.counts.num_by_size
        self._by_size(LOW_WATER)
        return self.counts.num_by_size > before

    def apply(self) -> None:
        """Let go of what is too old, then of what is too much.

        :raises sqlite3.Error: the batch at hand was rolled back, those before it hold.
        """
        self._by_age()
        if self.is_due_by_size:
            self._by_size(LOW_WATER)
        self._drop_old_observations()
        self._connection.execute("INSERT INTO words (words, rank) VALUES ('merge', 64)")
        self._connection.execute(f'PRAGMA incremental_vacuum({BATCH})').fetchall()

    def _by_age(self) -> None:
        newest = self._connection.execute(
            'SELECT last_ns FROM entry ORDER BY id DESC LIMIT 1'
        ).fetchone()
        if newest is None:
            return
        for kind, age_s in (
            (EntryKind.CHUNK, self._rules.chunk_max_age_s),
            (None, self._rules.max_age_s),
        ):
            oldest_ns = newest[0] - int(age_s * 1e9)
            while True:
                batch = [row[0] for row in self._oldest(kind) if row[1] < oldest_ns]
                self._delete(batch)
                self.counts.num_by_age += len(batch)
                if len(batch) < BATCH:
                    break

    def _by_size(self, level: float) -> None:
        for kind in (EntryKind.CHUNK, None):
            while self.used_pages > level * self._rules.max_pages:
                batch = [row[0] for row in self._oldest(kind)]
                if not batch:
                    break
                self._delete(batch)
                self.counts.num_by_size += len(batch)

    def _oldest(self, kind: EntryKind | None) -> list[tuple[int, int]]:
        # Ids keep the order of time, so the look is at a batch and never at the whole table.
        if kind is None:
            return self._connection.execute(
                'SELECT id, last_ns FROM entry ORDER BY id LIMIT ?', (BATCH,)
            ).fetchall()
        return self._connection.execute(
            'SELECT id, last_ns FROM entry WHERE kind = ? ORDER BY id LIMIT ?', (int(kind), BATCH)
        ).fetchall()

    def _delete(self, entries: list[int]) -> None:
        if not entries:
            return
        run = self._connection.execute
        run('BEGIN IMMEDIATE')
        try:
            observations: set[int] = set()
            for entry in entries:
                row = run(
                    'DELETE FROM entry WHERE id = ? RETURNING observation, last_observation',
                    (entry,),
                ).fetchone()
                observations |= {value for value in row or () if value is not None}
            for observation in observations:
                self.counts.num_observations += run(
                    'DELETE FROM observation WHERE id = ?1 AND place IS NULL AND NOT EXISTS '
                    '(SELECT 1 FROM entry WHERE observation = ?1) AND NOT EXISTS '
                    '(SELECT 1 FROM entry WHERE last_observation = ?1)',
                    (observation,),
                ).rowcount
            run('COMMIT')
        except BaseException:
            if self._connection.in_transaction:
                run('ROLLBACK')
            raise

    def _drop_old_observations(self) -> None:
        run = self._connection.execute
        oldest = run('SELECT first_ns FROM entry ORDER BY id LIMIT 1').fetchone()
        if oldest is not None:
            self.counts.num_observations += run(
                'DELETE FROM observation WHERE id IN (SELECT id FROM observation ORDER BY id '
                'LIMIT ?) AND stamp_ns < ? AND NOT EXISTS (SELECT 1 FROM entry WHERE '
                'observation = observation.id OR last_observation = observation.id)',
                (4 * BATCH, oldest[0]),
            ).rowcount
        run(
            'DELETE FROM run WHERE id < ? AND NOT EXISTS '
            '(SELECT 1 FROM observation WHERE run = run.id)',
            (self._run,),
        )
