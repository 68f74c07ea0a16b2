# SPDX-License-Identifier: Apache-2.0
"""What is written to the store is found again, with where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
import sqlite3
import threading

from memory_notes import (
    chunk,
    known,
    one_of_each,
    provenance,
    said,
    scene,
    SECOND,
    START,
    told,
    with_place,
)
import numpy as np
import pytest

from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryEntry, MemoryReader
from oxygen_ros.memory.episodes.records import EntryKind, PlaceNote
from oxygen_ros.memory.episodes.store import EpisodicStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the store is to be."""
    return tmp_path / 'memory' / 'memory.db'


@pytest.fixture
def store(path: Path) -> Iterator[EpisodicStore]:
    """Return an empty store."""
    store = EpisodicStore(path, started_ns=START, software='0.1.0')
    yield store
    store.close()


def find(path: Path, **query: object) -> list[MemoryEntry]:
    """Return the entries that a fresh reader finds."""
    reader = MemoryReader(path)
    try:
        return list(reader.find(MemoryQuery(**query)).entries)  # type: ignore[arg-type]
    finally:
        reader.close()


def test_each_kind_comes_back_with_its_provenance(store: EpisodicStore, path: Path) -> None:
    store.write(one_of_each(7))
    entries = {entry.kind: entry for entry in find(path)}
    assert set(entries) == set(EntryKind)
    for kind, entry in entries.items():
        assert entry.run == (0 if kind is EntryKind.INSTRUCTION else store.run)
        assert entry.first_ns == entry.last_ns == START + 7 * SECOND
        assert entry.provenance == (None if kind is EntryKind.INSTRUCTION else provenance(7))
    assert entries[EntryKind.UTTERANCE].text == 'utterance 7'
    assert entries[EntryKind.UTTERANCE].verdict == 'unverified'
    assert entries[EntryKind.UTTERANCE].detail == {
        'request_id': 7,
        'finish_reason': 'stop',
        'question': 'what is there?',
        'cited': [3, 4],
    }
    assert entries[EntryKind.INSTRUCTION].detail == {'source': '~/set_instruction'}
    assert entries[EntryKind.CHUNK].detail == {
        'chunk_id': 7,
        'num_steps': 16,
        'step_ns': 20_000_000,
        'pass_ms': 12.5,
    }
    relation = entries[EntryKind.RELATION].relation
    assert relation is not None
    assert (relation.subject_label, relation.predicate, relation.object_label) == (
        'cup',
        'on',
        'table',
    )
    assert entries[EntryKind.RELATION].citation == f'm{entries[EntryKind.RELATION].entry_id}'


def test_an_object_comes_back_as_it_was(store: EpisodicStore, path: Path) -> None:
    seen = known(
        4, 1, 'cup', 'red', 'small', box=(1.5, 2.5, 30.0, 40.0), position=(0.1, -2.0, 3.0)
    )
    store.write([scene(1, seen)])
    assert find(path)[0].scene_object == seen
    bare = replace(known(5, 2, 'box', box=None), confidence=float('nan'))
    store.write([scene(2, bare)])
    back = find(path)[0].scene_object
    assert back is not None
    assert np.isnan(back.confidence)
    assert replace(back, confidence=0.0) == replace(bare, confidence=0.0)


def test_a_state_that_lasts_is_one_entry_and_a_new_state_another(
    store: EpisodicStore, path: Path
) -> None:
    store.write([scene(1, known(1, 1), known(2, 1, 'table'), relations=((1, 'on', 2),))])
    store.write(
        [
            scene(
                2,
                replace(known(1, 2), first_seen_ns=START + SECOND),
                known(2, 2, 'table'),
                relations=((1, 'on', 2),),
            )
        ]
    )
    (cup,) = find(path, label='cup', kind=EntryKind.OBJECT)
    assert (cup.first_ns, cup.last_ns) == (START + SECOND, START + 2 * SECOND)
    assert len(find(path, kind=EntryKind.RELATION)) == 1
    store.write([scene(3, known(1, 3, 'cup', 'red'))])
    store.write([scene(4, known(1, 4, 'cup', 'red', box=(80, 0, 10, 10)))])
    assert [entry.first_ns for entry in find(path, label='cup')] == [
        START + 4 * SECOND,
        START + 3 * SECOND,
        START + SECOND,
    ]


def test_an_entry_does_not_grow_beyond_its_span(store: EpisodicStore, path: Path) -> None:
    for number in (1, 31, 61, 62, 122):
        store.write([scene(number, known(1, number))])
    assert [(entry.first_ns - START, entry.last_ns - START) for entry in find(path)] == [
        (62 * SECOND, 122 * SECOND),
        (1 * SECOND, 61 * SECOND),
    ]


def test_an_object_only_remembered_is_not_seen_again(store: EpisodicStore, path: Path) -> None:
    store.write([scene(1, known(1, 1))])
    store.write([scene(2, known(1, 1), known(2, 2, 'mug'))])
    assert [entry.last_ns for entry in find(path, label='cup')] == [START + SECOND]


def test_a_place_is_kept_with_its_observation(store: EpisodicStore, path: Path) -> None:
    store.write([with_place(scene(1, known(1, 1)), 0.25, -1.5)])
    store.write([PlaceNote(provenance(2), np.array([1.0, 2.0], dtype=np.float32))])
    reader = MemoryReader(path)
    first, second = reader.place(store.run, 1), reader.place(store.run, 2)
    assert first is not None and first.dtype == np.float32 and first.tolist() == [0.25, -1.5]
    assert second is not None and second.tolist() == [1.0, 2.0]
    assert reader.place(store.run, 3) is None
    reader.close()


def test_a_batch_is_written_whole_or_not_at_all(store: EpisodicStore, path: Path) -> None:
    before = scene(1, known(1, 1))
    bad = scene(2, known(1, 2, 'cup', 'red'))
    bad = replace(bad, update=replace(bad.update, provenance=None))
    with pytest.raises(ValueError, match='provenance'):
        store.write([before, said(1, 'hello'), bad])
    assert find(path) == []
    with pytest.raises(ValueError, match='too large'):
        store.write([replace(said(1, 'x'), stamp_ns=2**63)])
    store.write([before])
    assert len(find(path)) == 1


def test_a_wrong_place_is_refused(store: EpisodicStore) -> None:
    with pytest.raises(ValueError, match='place: expected'):
        store.write([PlaceNote(provenance(1), np.zeros((2, 2), dtype=np.float32))])


def test_numbers_that_are_not_finite_are_left_out(store: EpisodicStore, path: Path) -> None:
    nan, inf = float('nan'), float('inf')
    store.write([scene(1, known(1, 1, box=(nan, 0, 1, 1), position=(0.0, inf, 0.0)))])
    back = find(path)[0].scene_object
    assert back is not None
    assert back.box_px is None
    assert back.position_m is None


def test_another_run_counts_its_own_observations(path: Path) -> None:
    for run in (1, 2):
        store = EpisodicStore(path, started_ns=START)
        assert store.run == run
        store.write([said(1, f'run {run}')])
        store.close()
    store = EpisodicStore(path, started_ns=START, resume_run=2)
    store.write([said(1, 'resumed')])
    store.close()
    assert [entry.run for entry in find(path)] == [2, 2, 1]
    assert store.run == 2


def test_only_the_thread_that_made_it_may_write(store: EpisodicStore) -> None:
    caught: list[Exception] = []

    def write() -> None:
        try:
            store.write([said(1, 'hello')])
        except Exception as error:  # noqa: B902, BLE001 any is looked at below
            caught.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert 'same thread' in str(caught[0])


def test_a_reader_cannot_write(store: EpisodicStore, path: Path) -> None:
    store.write([said(1, 'hello')])
    reader = MemoryReader(path)
    for statement in ('DELETE FROM entry', 'DELETE FROM run', 'PRAGMA user_version = 9'):
        with pytest.raises(sqlite3.OperationalError, match=r'readonly|unsafe'):
            reader._connection.execute(statement)
    reader.close()


def test_stats_count_what_is_there(store: EpisodicStore) -> None:
    store.write([*one_of_each(1), chunk(2), told(3, 'x')])
    stats = store.stats()
    assert stats.num_entries == {
        'object': 2,
        'relation': 1,
        'utterance': 1,
        'instruction': 2,
        'chunk': 2,
    }
    assert stats.num_observations == 2
    assert 0 < stats.num_bytes < stats.max_bytes


def test_an_empty_scene_is_an_observation_without_entries(
    store: EpisodicStore, path: Path
) -> None:
    store.write([scene(1)])
    assert find(path) == []
    assert store.stats().num_observations == 1
