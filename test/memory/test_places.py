# SPDX-License-Identifier: Apache-2.0
"""Looking for a place by what it looked like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from memory_notes import known, provenance, scene, SECOND, START
import numpy as np
import pytest

from oxygen_ros.memory.episodes.places import NUM_NEAR
from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryReader
from oxygen_ros.memory.episodes.records import PlaceNote, SceneNote
from oxygen_ros.memory.episodes.store import EpisodicStore
from oxygen_ros.types import FloatArray

KITCHEN, HALL = (1.0, 0.0, 0.2), (0.0, 1.0, 0.1)


def looks(like: tuple[float, ...], number: int) -> FloatArray:
    """Return the embedding of a place, a little different each time."""
    noise = np.random.default_rng(number).normal(0.0, 0.02, len(like))
    return (np.array(like) + noise).astype(np.float32)


def at(number: int, place: tuple[float, ...], label: str) -> SceneNote:
    """Return a scene of one object, seen at a place."""
    return replace(scene(number, known(number, number, label)), place=looks(place, number))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EpisodicStore]:
    store = EpisodicStore(tmp_path / 'memory.db', started_ns=START)
    for number in range(1, 21):
        store.write(
            [
                at(number, KITCHEN, 'cup')
                if number <= 5 or number > 15
                else at(number, HALL, 'door')
            ]
        )
    yield store
    store.close()


@pytest.fixture
def reader(store: EpisodicStore) -> Iterator[MemoryReader]:
    reader = MemoryReader(store.path)
    yield reader
    reader.close()


def test_the_likest_places_come_first_and_the_same_one_is_among_them(
    store: EpisodicStore, reader: MemoryReader
) -> None:
    found = reader.nearest_places(store.run, 20, 10)
    assert found[0].observation_id == 20
    assert {place.observation_id for place in found} == {1, 2, 3, 4, 5, 16, 17, 18, 19, 20}
    assert [place.similarity for place in found] == sorted(
        (place.similarity for place in found), reverse=True
    )
    assert found[0].similarity == pytest.approx(1.0) and found[0].stamp_ns == START + 20 * SECOND
    assert len(reader.nearest_places(store.run, 20)) == NUM_NEAR


def test_a_query_answers_what_was_seen_there_before(
    store: EpisodicStore, reader: MemoryReader
) -> None:
    before = START + 12 * SECOND
    page = reader.find(MemoryQuery(place=(store.run, 20), end_ns=before, limit=5))
    assert [entry.scene_object.label for entry in page.entries if entry.scene_object] == [
        'door'
    ] * 5  # 12 observations are fewer than are looked at, so all of them are
    for number in range(21, 40):
        store.write([at(number, HALL, 'door')])
    page = reader.find(MemoryQuery(place=(store.run, 40 - 1), label='cup'))
    assert page.entries == ()
    page = reader.find(MemoryQuery(place=(store.run, 39), words='door', limit=100))
    assert len(page.entries) == NUM_NEAR


def test_an_entry_that_lasts_counts_for_each_observation_within_it(tmp_path: Path) -> None:
    store = EpisodicStore(tmp_path / 'lasting.db', started_ns=START)
    for number in (1, 2, 3):
        store.write([scene(number, replace(known(1, number), first_seen_ns=START))])
    store.write([PlaceNote(provenance(2), looks(KITCHEN, 2))])
    reader = MemoryReader(store.path)
    page = reader.find(MemoryQuery(place=(store.run, 2)))
    assert len(page.entries) == 1 and page.entries[0].last_ns == START + 3 * SECOND
    reader.close()
    store.close()


@pytest.mark.parametrize('observation_id', [0, 99, 2**62])
def test_an_unknown_observation_has_no_place(
    store: EpisodicStore, reader: MemoryReader, observation_id: int
) -> None:
    assert reader.nearest_places(store.run, observation_id) == []
    assert reader.find(MemoryQuery(place=(store.run, observation_id))).entries == ()


def test_places_of_other_weights_or_sizes_are_not_compared(
    store: EpisodicStore, reader: MemoryReader
) -> None:
    other = replace(provenance(30), model_checksum='ff' * 32)
    store.write(
        [PlaceNote(other, looks(KITCHEN, 30)), PlaceNote(provenance(31), np.ones(7, np.float32))]
    )
    found = reader.nearest_places(store.run, 20, 100)
    assert {place.observation_id for place in found} == set(range(1, 21))


def test_a_place_of_zeros_is_like_nothing(store: EpisodicStore, reader: MemoryReader) -> None:
    store.write([PlaceNote(provenance(31), np.zeros(0, np.float32))])
    assert reader.nearest_places(store.run, 31) == []
    store.write([PlaceNote(provenance(30), np.zeros(3, np.float32))])
    assert {place.similarity for place in reader.nearest_places(store.run, 30)} == {0.0}


def test_a_place_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match='place observation: expected a 64-bit number'):
        MemoryQuery(place=(1, 2**63))
