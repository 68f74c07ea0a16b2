# SPDX-License-Identifier: Apache-2.0
"""Reading the store: queries answered with entries that name where they come from."""

from __future__ import annotations

from dataclasses import dataclass
import json
from pathlib import Path
import sqlite3

import numpy as np

from ...types import FloatArray, Provenance, SceneObject
from .connection import open_reader, time_limit, translated
from .places import nearest_places, NearPlace, NUM_NEAR
from .query import MemoryQuery, select_statement, words_expression
from .records import EntryKind

_RECENT = 2_000  # entries looked at one by one before an index lists its own


@dataclass(frozen=True, slots=True)
class RememberedRelation:
    """A relation as it was remembered, with the labels that its ends had."""

    subject_id: int
    subject_label: str
    predicate: str
    object_id: int
    object_label: str


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One thing remembered."""

    entry_id: int
    kind: EntryKind
    first_ns: int  # ROS time
    last_ns: int  # ROS time
    text: str
    detail: dict[str, object]
    verdict: str  # supported, contradicted, unverified; empty: not checked
    run: int  # activation that the observation id belongs to; 0: no observation
    provenance: Provenance | None  # None only for an instruction, which names its source in detail
    scene_object: SceneObject | None = None
    relation: RememberedRelation | None = None

    @property
    def citation(self) -> str:
        """The name by which an answer cites it."""
        return f'm{self.entry_id}'


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A part of an answer."""

    entries: tuple[MemoryEntry, ...]  # newest first
    next_before: int | None  # `before` of the next page; None: this is the last


class MemoryReader:
    """Answers queries. Belongs to the thread that made it; any number may exist beside the writer.

    :param limit_s: the longest that one query may take.
    :raises StoreUnavailable: there is no store, or it cannot be read now.
    """

    def __init__(self, path: str | Path, limit_s: float = 1.0) -> None:
        self.path = Path(path)
        self._limit_s = limit_s
        self._connection = open_reader(path)
        try:
            with translated(path):
                row = self._connection.execute(
                    "SELECT value FROM meta WHERE key = 'base_ns'"
                ).fetchone()
        except BaseException:
            self._connection.close()
            raise
        self._base_ns = int(row['value']) if row else 0

    def find(self, query: MemoryQuery) -> MemoryPage:
        """Return the newest entries that match.

        :raises QueryTooSlow: stopped at the time limit.
        :raises StoreUnavailable: the store cannot be read now.
        """
        if query.words and not words_expression(query.words):
            return MemoryPage((), None)  # nothing but white space is asked for
        with translated(self.path), time_limit(self._connection, self._limit_s):
            near = self._near(query)
            rows = self._find_recent(query, near) if query.region or query.words else []
            if len(rows) <= query.limit:
                rows = self._connection.execute(
                    *select_statement(query, self._base_ns, near=near)
                ).fetchall()
        entries = tuple(_entry(row) for row in rows[: query.limit])
        return MemoryPage(entries, entries[-1].entry_id if len(rows) > query.limit else None)

    def _near(self, query: MemoryQuery) -> list[int]:
        if query.place is None:
            return []
        found = nearest_places(
            self._connection, *query.place, start_ns=query.start_ns, end_ns=query.end_ns
        )
        return [place.row for place in found]

    def _find_recent(self, query: MemoryQuery, near: list[int]) -> list[sqlite3.Row]:
        # A region or a word that is everywhere fills the page from the newest entries alone; its
        # index would first list all that it holds (100 ms for the region of 100,000 objects).
        newest = query.before
        if newest is None:
            newest = self._connection.execute('SELECT max(id) FROM entry').fetchone()[0] or 0
        return self._connection.execute(
            *select_statement(query, self._base_ns, after=newest - _RECENT, near=near)
        ).fetchall()

    def place(self, run: int, observation_id: int) -> FloatArray | None:
        """Return the place embedding kept with an observation; None where there is none.

        :raises StoreUnavailable: the store cannot be read now.
        """
        with translated(self.path):
            row = self._connection.execute(
                'SELECT place FROM observation WHERE run = ? AND observation_id = ?',
                (run, observation_id),
            ).fetchone()
        if row is None or row['place'] is None:
            return None
        return np.frombuffer(row['place'], dtype='<f4').astype(np.float32)

    def nearest_places(
        self, run: int, observation_id: int, num_places: int = NUM_NEAR
    ) -> list[NearPlace]:
        """Return the observations whose place is most like that of one, the likest first.

        :raises QueryTooSlow: stopped at the time limit.
        :raises StoreUnavailable: the store cannot be read now.
        """
        with translated(self.path), time_limit(self._connection, self._limit_s):
            return nearest_places(self._connection, run, observation_id, num_places)

    def check(self) -> str:
        """Look through the whole file for damage; return 'ok' or what SQLite found first.

        :raises StoreDamaged: the file is not readable as a database.
        """
        with translated(self.path):
            return str(self._connection.execute('PRAGMA quick_check(1)').fetchone()[0])

    def close(self) -> None:
        """End reading; may be called twice."""
        self._connection.close()


def _entry(row: sqlite3.Row) -> MemoryEntry:
    provenance = None
    if row['observation_id'] is not None:
        cameras: dict[str, int] = json.loads(row['cameras'])
        provenance = Provenance(
            row['observation_id'],
            row['stamp_ns'],
            tuple(cameras),
            tuple(cameras.values()),
            row['state_stamp_ns'],
            row['model_checksum'],
        )
    detail: dict[str, object] = json.loads(row['detail'])
    relation = None
    if row['subject_id'] is not None:
        relation = RememberedRelation(
            row['subject_id'],
            row['subject_label'],
            row['predicate'],
            row['other_id'],
            row['object_label'],
        )
    return MemoryEntry(
        row['entry'],
        EntryKind(row['kind']),
        row['first_ns'],
        row['last_ns'],
        row['text'],
        detail,
        row['verdict'],
        row['run'] or 0,
        provenance,
        _object(row, detail, provenance),
        relation,
    )


def _object(
    row: sqlite3.Row, detail: dict[str, object], provenance: Provenance | None
) -> SceneObject | None:
    if row['object_id'] is None:
        return None
    box = (row['box_x'], row['box_y'], row['box_width'], row['box_height'])
    position = (row['x'], row['y'], row['z'])
    first_seen_ns = detail.get('first_seen_ns', row['first_ns'])
    assert isinstance(first_seen_ns, int)
    return SceneObject(
        row['object_id'],
        row['label'],
        tuple(json.loads(row['attributes'])),
        float('nan') if row['confidence'] is None else row['confidence'],
        row['camera'],
        None if box[0] is None else box,
        row['frame_id'],
        None if position[0] is None else position,
        first_seen_ns,
        row['last_ns'],
        provenance,
    )
