# SPDX-License-Identifier: Apache-2.0
"""The store lets go of the old and the too much, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from memory_notes import chunk, known, provenance, said, scene, SECOND, START, told, with_place
import numpy as np
import pytest

from oxygen_ros.memory.episodes.connection import MIN_STORE_BYTES, StoreRules
from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryReader
from oxygen_ros.memory.episodes.records import EntryKind, PlaceNote
from oxygen_ros.memory.episodes.retention import Retention
from oxygen_ros.memory.episodes.store import EpisodicStore, store_bytes
from oxygen_ros.memory.errors import StoreUnavailable


def kept(path: Path, kind: EntryKind | None = None) -> list[int]:
    """Return when the kept entries began, in seconds, newest first, at most a page."""
    reader = MemoryReader(path)
    try:
        return [
            (entry.first_ns - START) // SECOND
            for entry in reader.find(MemoryQuery(kind=kind, limit=100)).entries
        ]
    finally:
        reader.close()


def test_age_counts_back_from_the_newest_entry(tmp_path: Path) -> None:
    path = tmp_path / 'memory.db'
    store = EpisodicStore(
        path, StoreRules(max_age_s=100.0, chunk_max_age_s=10.0), started_ns=START
    )
    for number in range(1, 130):
        store.write([said(number, 'hello'), chunk(number)])
    store.apply_retention()
    assert kept(path, EntryKind.CHUNK) == list(range(129, 118, -1))
    stats = store.stats()
    assert stats.num_entries == {'utterance': 101, 'chunk': 11}
    assert stats.num_observations == 101  # each still named by an utterance
    assert stats.retention.num_by_age == 2 * 129 - 112
    store.close()


def test_an_observation_goes_with_what_names_it(tmp_path: Path) -> None:
    path = tmp_path / 'memory.db'
    store = EpisodicStore(
        path, StoreRules(max_age_s=100.0, chunk_max_age_s=10.0), started_ns=START
    )
    place = np.ones(8, dtype=np.float32)
    store.write(
        [
            chunk(1),
            with_place(scene(2, known(1, 2)), 1.0),
            PlaceNote(provenance(3), place),
            said(50, 'hello'),
        ]
    )
    store.apply_retention()
    assert store.stats().num_observations == 3  # the chunk's is gone
    store.write([told(200, 'now')])
    store.apply_retention()
    assert kept(path) == [200]
    assert store.stats().num_observations == 0
    store.close()


def test_a_lasting_state_is_kept_by_its_end(tmp_path: Path) -> None:
    path = tmp_path / 'memory.db'
    store = EpisodicStore(path, StoreRules(max_age_s=30.0, entry_span_s=1e6), started_ns=START)
    for number in range(1, 100):
        store.write(
            [scene(number, known(1, number), known(2, number, 'table'), relations=((1, 'on', 2),))]
        )
    store.apply_retention()
    assert kept(path) == [1, 1, 1]
    # Only the observations that the entries name are left of those in between.
    assert store.stats().num_observations <= 99
    store.close()


def test_an_entry_taken_while_its_state_lasts_comes_back(tmp_path: Path) -> None:
    path = tmp_path / 'memory.db'
    store = EpisodicStore(path, StoreRules(max_age_s=10.0), started_ns=START)
    store.write([scene(1, known(1, 1))])
    store.write([told(50, 'wait')])
    store.apply_retention()
    store.write([scene(51, known(1, 51))])
    assert kept(path) == [51, 50]
    store.close()


def test_all_files_together_stay_below_the_limit(tmp_path: Path) -> None:
    max_bytes = MIN_STORE_BYTES
    path = tmp_path / 'memory.db'
    store = EpisodicStore(path, StoreRules(max_bytes=max_bytes), started_ns=START)
    reader = MemoryReader(path)  # an open reader must not let the log grow without end
    most = 0
    for number in range(1, 500):
        objects = [
            known(
                6 * number + index,
                number,
                'cup',
                'red',
                position=(1.0, 2.0, index / 9),
                box=(index, index, 9, 9),
            )
            for index in range(6)
        ]
        store.write(
            [
                with_place(scene(number, *objects), *[0.5] * 4_096),
                said(number, f'word{number} ' * 60),
                chunk(number),
            ]
        )
        most = max(most, store_bytes(path))
        if number % 50 == 0:
            reader.find(MemoryQuery(words='red'))
    assert most <= max_bytes
    stats = store.stats()
    assert stats.retention.num_by_size > 0
    assert most > max_bytes / 2  # the limit is used, not just kept
    newest = kept(path)
    assert newest[0] == 499
    assert len(reader.find(MemoryQuery(words='word499')).entries) == 1
    assert reader.find(MemoryQuery(words='word4', limit=1)).entries  # as the start of a word
    assert reader.check() == 'ok'
    reader.close()
    store.close()


def test_a_batch_that_finds_no_room_makes_some_or_fits_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'memory.db'
    store = EpisodicStore(path, StoreRules(max_bytes=MIN_STORE_BYTES), started_ns=START)
    monkeypatch.setattr(Retention, 'is_due_by_size', False)  # nothing is let go in time
    number = 0
    for _ in range(30):
        batch = [said(number + index, f'{number + index} ' * 600) for index in range(60)]
        number += 60
        store.write(batch)
    assert store.stats().retention.num_by_size > 0
    assert kept(path)[0] == number - 1
    most = store.stats().num_entries['utterance']
    with pytest.raises(StoreUnavailable, match='full'):
        store.write([said(number + index, f'{number + index} ' * 600) for index in range(1_500)])
    store.write([said(number, 'a small one')])
    assert kept(path)[0] == number
    assert store.stats().num_entries['utterance'] > most / 2
    store.close()


def test_a_full_disk_is_no_reason_to_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'memory.db'
    store = EpisodicStore(path, StoreRules(max_bytes=MIN_STORE_BYTES), started_ns=START)
    monkeypatch.setattr(Retention, 'is_due_by_size', False)
    monkeypatch.setattr(
        'oxygen_ros.memory.episodes.store.os.statvfs',
        lambda _: os.statvfs_result((4_096, 4_096, 10**6, 0, 0, 0, 0, 0, 0, 255)),
    )
    number = 0
    with pytest.raises(StoreUnavailable, match='full'):
        while True:
            store.write([said(number + index, f'{number} ' * 600) for index in range(50)])
            number += 50
    stats = store.stats()
    assert stats.num_entries == {'utterance': number}
    assert stats.retention.num_by_size == 0
    store.close()
