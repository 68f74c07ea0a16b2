# SPDX-License-Identifier: Apache-2.0
"""The store's file: made, brought to a newer version, refused, missed."""

from __future__ import annotations

from pathlib import Path
import sqlite3

from memory_notes import said, START
import pytest

from oxygen_ros.memory.episodes.connection import StoreRules
from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryReader
from oxygen_ros.memory.episodes.schema import migrate, MIGRATIONS
from oxygen_ros.memory.episodes.store import EpisodicStore
from oxygen_ros.memory.errors import StoreDamaged, StoreUnavailable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the store is to be."""
    return tmp_path / 'memory' / 'memory.db'


def test_a_missing_store_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r'none\.db'):
        MemoryReader(tmp_path / 'none.db')


def test_a_store_moved_away_is_noticed(path: Path) -> None:
    store = EpisodicStore(path)
    path.rename(path.with_suffix('.old'))
    with pytest.raises(StoreUnavailable):
        store.write([said(1, 'lost?')])
    store.close()


def test_migration_goes_step_by_step_and_keeps_what_was_there(path: Path) -> None:
    store = EpisodicStore(path, started_ns=START)
    store.write([said(1, 'from version 1')])
    store.close()
    newer = (*MIGRATIONS, "ALTER TABLE run ADD COLUMN robot TEXT NOT NULL DEFAULT 'arm';")
    connection = sqlite3.connect(path, isolation_level=None)
    assert migrate(connection, newer) == 1
    assert migrate(connection, newer) == 2
    assert connection.execute('SELECT robot FROM run').fetchall() == [('arm',)]
    broken = (*newer, 'CREATE TABLE half (a); CREATE TABLE run (b);')
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, broken)
    assert connection.execute('PRAGMA user_version').fetchone() == (2,)
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchall()
    connection.close()
    reader = MemoryReader(path)
    assert reader.find(MemoryQuery()).entries[0].text == 'from version 1'
    reader.close()
    with pytest.raises(StoreDamaged, match='newer'):
        EpisodicStore(path)


def test_a_file_that_is_not_a_store_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE diary (day)')
    connection.commit()
    connection.close()
    with pytest.raises(StoreDamaged, match='another program'):
        EpisodicStore(path)
    path.write_bytes(b'Dear diary, ' * 1_000)
    with pytest.raises(StoreDamaged, match='not a database'):
        EpisodicStore(path)
    assert path.read_bytes().startswith(b'Dear diary')


def test_a_schema_that_is_no_text_any_more_is_damage(path: Path) -> None:
    EpisodicStore(path).close()
    raw = path.read_bytes()
    for sound, broken in (
        (b'tablerunrun', b'table\xf8\xf8\xf8run'),
        (b'CREATE TABLE run', b'CREATE TABLE ((('),
    ):
        assert sound in raw
        raw = raw.replace(sound, broken)
    path.write_bytes(raw)
    for opened in (EpisodicStore, MemoryReader):
        with pytest.raises(StoreDamaged, match='malformed database schema'):
            opened(path)


@pytest.mark.parametrize(
    ('kwargs', 'field'),
    [
        ({'max_bytes': 1}, 'memory.retention_bytes'),
        ({'max_age_s': 0.0}, 'memory.retention_age_s'),
        ({'entry_span_s': -1.0}, 'entry_span_s'),
        ({'synchronous': 'off'}, 'synchronous'),
    ],
)
def test_a_wrong_rule_names_its_field(kwargs: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=f'{field}: expected'):
        StoreRules(**kwargs)  # type: ignore[arg-type]
