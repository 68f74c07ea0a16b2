# SPDX-License-Identifier: Apache-2.0
"""The tables of the episodic store, their version, and the way from an older one.

An entry is one thing remembered: the state of an object or a relation over some time, an
utterance, an instruction, a summary of an action chunk. Its id counts up and is never used again,
so an id that was cited stays meaningful, and the order of ids is the order of time.
"""

from __future__ import annotations

from collections.abc import Sequence
import sqlite3

from ..errors import StoreDamaged

APPLICATION_ID = 0x4F785247  # 'OxRG', in the file's header

_VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- One activation of the node; observation ids count from 1 in each.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started_ns INTEGER NOT NULL,
    software TEXT NOT NULL
);

CREATE TABLE observation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run (id),
    observation_id INTEGER NOT NULL,
    stamp_ns INTEGER NOT NULL,
    cameras TEXT NOT NULL,          -- JSON: camera name to header stamp (ns), in the model's order
    state_stamp_ns INTEGER NOT NULL,
    model_checksum TEXT NOT NULL,
    place BLOB,                     -- embedding, little-endian float32
    UNIQUE (run, observation_id)
);

CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL,
    observation INTEGER REFERENCES observation (id),       -- the first that it was seen in
    last_observation INTEGER REFERENCES observation (id),  -- the newest
    first_ns INTEGER NOT NULL,      -- ROS time
    last_ns INTEGER NOT NULL,       -- ROS time
    text TEXT NOT NULL,             -- what the word index holds
    detail TEXT NOT NULL,           -- JSON, by kind
    verdict TEXT NOT NULL           -- supported, contradicted, unverified; empty: not checked
);
CREATE INDEX entry_kind ON entry (kind);
CREATE INDEX entry_observation ON entry (observation);
CREATE INDEX entry_last_observation ON entry (last_observation);

CREATE TABLE object (
    entry INTEGER PRIMARY KEY REFERENCES entry (id) ON DELETE CASCADE,
    object_id INTEGER NOT NULL,
    label TEXT NOT NULL,
    attributes TEXT NOT NULL,       -- JSON list
    confidence REAL,
    camera TEXT NOT NULL,
    box_x REAL, box_y REAL, box_width REAL, box_height REAL,  -- px
    frame_id TEXT NOT NULL,
    x REAL, y REAL, z REAL          -- m
);
CREATE INDEX object_label ON object (label);
CREATE INDEX object_object_id ON object (object_id);

CREATE TABLE relation (
    entry INTEGER PRIMARY KEY REFERENCES entry (id) ON DELETE CASCADE,
    subject_id INTEGER NOT NULL,
    predicate TEXT NOT NULL,
    object_id INTEGER NOT NULL,
    subject_label TEXT NOT NULL,
    object_label TEXT NOT NULL
);
-- Each ends in the entry by itself, so that the newest come first without sorting.
CREATE INDEX relation_predicate ON relation (predicate);
CREATE INDEX relation_subject ON relation (subject_label, predicate);
CREATE INDEX relation_object ON relation (object_label, predicate);

-- Coordinates are rounded outwards to 32 bits; the exact ones above decide.
-- Times are seconds since meta.base_ns, so that 32 bits resolve about a second for months.
CREATE VIRTUAL TABLE space USING rtree (
    entry, min_x, max_x, min_y, max_y, min_z, max_z, min_t, max_t, +frame_id TEXT);
CREATE VIRTUAL TABLE image USING rtree (
    entry, min_u, max_u, min_v, max_v, min_t, max_t, +camera TEXT);

CREATE VIRTUAL TABLE words USING fts5 (text, content = 'entry', content_rowid = 'id');
CREATE TRIGGER entry_added AFTER INSERT ON entry WHEN new.text <> '' BEGIN
    INSERT INTO words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER entry_deleted AFTER DELETE ON entry BEGIN
    INSERT INTO words (words, rowid, text) SELECT 'delete', old.id, old.text WHERE old.text <> '';
    DELETE FROM space WHERE entry = old.id;
    DELETE FROM image WHERE entry = old.id;
END;
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1,)
"""Script number n takes a store from version n to n + 1; version 0 is an empty file."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Bring a store to the newest version, one transaction a step; return the version it had.

    :raises StoreDamaged: the file is of a newer version, or not a store of ours.
    :raises sqlite3.Error: a step failed; the store is as it was before that step.
    """
    version = int(connection.execute('PRAGMA user_version').fetchone()[0])
    owner = int(connection.execute('PRAGMA application_id').fetchone()[0])
    num_tables = int(connection.execute('SELECT count(*) FROM sqlite_master').fetchone()[0])
    if owner != APPLICATION_ID and (owner or version or num_tables):
        raise StoreDamaged(
            f'expected a memory store or an empty file, got a database of another '
            f'program (application id {owner:#x}, {num_tables} tables and indices)'
        )
    if version > len(migrations):
        raise StoreDamaged(
            f'expected a store of version {len(migrations)} or older, got version '
            f'{version}: written by a newer oxygen_ros'
        )
    for number in range(version, len(migrations)):
        _step(connection, migrations[number], number + 1)
    return version


def _step(connection: sqlite3.Connection, script: str, version: int) -> None:
    try:
        connection.executescript(
            f'BEGIN IMMEDIATE;\n{script}\nPRAGMA application_id = {APPLICATION_ID};\n'
            f'PRAGMA user_version = {version};\nCOMMIT;'
        )
    except sqlite3.Error:
        if connection.in_transaction:
            connection.rollback()
        raise
