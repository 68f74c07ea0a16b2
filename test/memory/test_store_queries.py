# SPDX-License-Identifier: Apache-2.0
"""Queries find what a look at everything would find, and nothing a hostile text could ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import random
import sqlite3

from hypothesis import example, given, settings, strategies
from memory_notes import known, said, scene, SECOND, START, told
import pytest

from oxygen_ros.memory.episodes.query import MemoryQuery, Region
from oxygen_ros.memory.episodes.reader import MemoryEntry, MemoryReader
from oxygen_ros.memory.episodes.records import EntryKind
from oxygen_ros.memory.episodes.store import EpisodicStore
from oxygen_ros.memory.errors import QueryTooSlow
from oxygen_ros.memory.limits import MAX_NAME_CHARS, MAX_TEXT_CHARS

NUM_SCENES = 150
LABELS = ('cup', 'cupboard', 'table', 'coffee_machine')
ATTRIBUTES = ('red', 'blue', 'open')
PREDICATES = ('on', 'in', 'left_of')
HOSTILE = (
    "'; DROP TABLE entry; --",
    '"; DELETE FROM object; --',
    'x" OR "1"="1',
    '* OR *',
    'NEAR(a b)',
    'text:cup',
    '-cup',
    '^cup',
    'cup AND (',
    '{}[]()*+?',
    '\'"`\\',
    '%_%',
    '\0cup',
    '\ud800',
    '\x1b[2J',
    'NOT',
    '😀' * 50,
    'a' * 100_000,
    ' \t\n',
    '"',
)


@pytest.fixture(scope='module')
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write scenes of three objects and two relations, and some words."""
    path = tmp_path_factory.mktemp('store') / 'memory.db'
    store, chance = EpisodicStore(path, started_ns=START), random.Random(1)
    for number in range(1, NUM_SCENES + 1):
        objects = [
            known(
                3 * number + index,
                number,
                chance.choice(LABELS),
                chance.choice(ATTRIBUTES),
                camera=chance.choice(('front', 'left')),
                box=(chance.uniform(0, 600), chance.uniform(0, 400), chance.uniform(1, 90), 50.0),
                position=None
                if chance.random() < 0.2
                else (chance.uniform(-3, 3), chance.uniform(-3, 3), chance.uniform(0, 1)),
                frame_id=chance.choice(('map', 'base')),
            )
            for index in range(3)
        ]
        store.write(
            [
                scene(
                    number,
                    *objects,
                    relations=tuple(
                        (objects[index].object_id, chance.choice(PREDICATES), objects[2].object_id)
                        for index in range(2)
                    ),
                ),
                said(number, f'I see the {objects[0].label} number {number}'),
                told(number, f'bring me {number}'),
            ]
        )
    store.close()
    return path


@pytest.fixture(scope='module')
def reader(path: Path) -> MemoryReader:
    """Return a reader of that store."""
    return MemoryReader(path)


def all_entries(reader: MemoryReader, query: MemoryQuery) -> list[MemoryEntry]:
    """Return all pages of an answer; ids go down, and each comes once."""
    found: list[MemoryEntry] = []
    before = None
    while True:
        fields = {name: getattr(query, name) for name in query.__dataclass_fields__}
        page = reader.find(MemoryQuery(**{**fields, 'before': before}))
        found += page.entries
        if page.next_before is None:
            break
        assert len(page.entries) == query.limit
        before = page.next_before
    ids = [entry.entry_id for entry in found]
    assert ids == sorted(set(ids), reverse=True)
    return found


@pytest.fixture(scope='module')
def everything(reader: MemoryReader) -> list[MemoryEntry]:
    """Return all entries, newest first."""
    entries = all_entries(reader, MemoryQuery(limit=100))
    assert len(entries) == NUM_SCENES * 7
    return entries


def inside(entry: MemoryEntry, region: Region) -> bool:
    """Say whether an object lies in a region."""
    seen = entry.scene_object
    if seen is None:
        return False
    if region.camera:
        if seen.camera != region.camera or seen.box_px is None:
            return False
        x, y, width, height = seen.box_px
        return (
            x + width >= region.low[0]
            and x <= region.high[0]
            and y + height >= region.low[1]
            and y <= region.high[1]
        )
    return (
        seen.frame_id == region.frame_id
        and seen.position_m is not None
        and all(
            low <= value <= high
            for low, value, high in zip(region.low, seen.position_m, region.high)
        )
    )


def matches(entry: MemoryEntry, query: MemoryQuery) -> bool:
    """Say whether an entry answers a query, by looking at everything."""
    words = entry.text.lower().replace('_', ' ').split()
    wanted = query.words.split()
    for index, word in enumerate(wanted):
        last = index == len(wanted) - 1
        if not any(other.startswith(word) if last else other == word for other in words):
            return False
    if query.predicate or query.other_label:
        relation = entry.relation
        if relation is None or (query.label and relation.subject_label != query.label):
            return False
        if query.predicate not in ('', relation.predicate):
            return False
        if query.other_label not in ('', relation.object_label):
            return False
    elif query.label and (entry.scene_object is None or entry.scene_object.label != query.label):
        return False
    return (
        (query.kind is None or entry.kind is query.kind)
        and (query.region is None or inside(entry, query.region))
        and (query.start_ns is None or entry.last_ns >= query.start_ns)
        and (query.end_ns is None or entry.first_ns <= query.end_ns)
    )


def regions() -> strategies.SearchStrategy[Region]:
    """Draw regions in frames and images, most of them small."""

    def make(low: tuple[float, float, float], size: float, frame_id: str) -> Region:
        return Region(low, tuple(value + size for value in low), frame_id)

    def cut(low: tuple[float, float], size: float, camera: str) -> Region:
        return Region(low, tuple(value + size for value in low), camera=camera)

    place, pixel = strategies.floats(-4, 3), strategies.floats(-50, 650)
    return strategies.one_of(
        strategies.builds(
            make,
            strategies.tuples(place, place, place),
            strategies.floats(0, 9),
            strategies.sampled_from(('map', 'base')),
        ),
        strategies.builds(
            cut,
            strategies.tuples(pixel, pixel),
            strategies.floats(0, 500),
            strategies.sampled_from(('front', 'left')),
        ),
    )


def queries() -> strategies.SearchStrategy[MemoryQuery]:
    """Draw queries with few and with many conditions."""

    def sometimes(
        values: strategies.SearchStrategy[object], otherwise: object
    ) -> strategies.SearchStrategy[object]:
        return strategies.one_of(strategies.just(otherwise), strategies.just(otherwise), values)

    second = strategies.integers(-10, NUM_SCENES + 10).map(lambda number: START + number * SECOND)
    return strategies.builds(
        MemoryQuery,
        words=sometimes(
            strategies.sampled_from(
                ('cup', 'red cup', 'coffee machine', 'bring me 3', 'number 17', 'zebra')
            ),
            '',
        ),
        kind=sometimes(strategies.sampled_from(list(EntryKind)), None),
        label=sometimes(strategies.sampled_from((*LABELS, 'zebra')), ''),
        predicate=sometimes(strategies.sampled_from(PREDICATES), ''),
        other_label=sometimes(strategies.sampled_from(LABELS), ''),
        region=sometimes(regions(), None),
        start_ns=sometimes(second, None),
        end_ns=sometimes(second, None),
        limit=strategies.sampled_from((7, 100)),
    )


@settings(max_examples=120, deadline=None)
@given(query=queries())
def test_a_query_finds_what_a_look_at_everything_finds(
    reader: MemoryReader, everything: list[MemoryEntry], query: MemoryQuery
) -> None:
    assert all_entries(reader, query) == [entry for entry in everything if matches(entry, query)]


def test_any_of_the_words_is_enough_where_asked(reader: MemoryReader) -> None:
    both = reader.find(MemoryQuery(words='zebra 17', any_words=True, limit=100)).entries
    assert {entry.text for entry in both} >= {'bring me 17'}
    assert reader.find(MemoryQuery(words='zebra 17')).entries == ()


@settings(max_examples=60, deadline=None)
@given(text=strategies.text(max_size=80))
@example(text=HOSTILE[0])
def test_no_text_of_a_query_is_anything_but_text(reader: MemoryReader, text: str) -> None:
    for query in (
        MemoryQuery(words=text),
        MemoryQuery(words=text, any_words=True),
        MemoryQuery(label=text),
        MemoryQuery(predicate=text, other_label=text),
        MemoryQuery(region=Region((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), text or 'x')),
    ):
        reader.find(query)


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_stored_bounded_and_harmless(tmp_path: Path, text: str) -> None:
    path = tmp_path / 'memory.db'
    store = EpisodicStore(path, started_ns=START)
    schema = sqlite3.connect(path).execute('SELECT sql FROM sqlite_master').fetchall()
    store.write(
        [
            scene(
                1,
                known(1, 1, text, text, camera=text, position=(0.0, 0.0, 0.0), frame_id=text),
                known(2, 1),
                relations=((1, text, 2),),
            ),
            said(1, text),
            told(1, text),
        ]
    )
    reader = MemoryReader(path)
    assert reader.check() == 'ok'
    entries = reader.find(MemoryQuery()).entries
    assert len(entries) == 5
    assert all(len(entry.text) <= MAX_TEXT_CHARS for entry in entries)
    assert all('\0' not in entry.text and '\x1b' not in entry.text for entry in entries)
    labelled = reader.find(MemoryQuery(label=text, kind=EntryKind.OBJECT)).entries
    assert labelled[-1].scene_object is not None
    assert len(labelled[-1].scene_object.label) <= MAX_NAME_CHARS
    assert reader.find(MemoryQuery(predicate=text)).entries
    reader.find(MemoryQuery(words=text))
    assert sqlite3.connect(path).execute('SELECT sql FROM sqlite_master').fetchall() == schema
    reader.close()
    store.close()


def test_a_query_that_takes_too_long_is_stopped(path: Path) -> None:
    reader = MemoryReader(path, limit_s=-1.0)
    with pytest.raises(QueryTooSlow, match='ask for less'):
        reader.find(MemoryQuery(words='cup'))
    reader.close()


@pytest.mark.parametrize(
    ('make', 'field'),
    [
        (lambda: MemoryQuery(limit=0), 'limit'),
        (lambda: MemoryQuery(limit=101), 'limit'),
        (lambda: MemoryQuery(start_ns=2**63), 'start_ns'),
        (lambda: MemoryQuery(before=2**64), 'before'),
        (lambda: Region((0.0,) * 3, (1.0,) * 3), 'region'),
        (lambda: Region((0.0,), (1.0,), 'map'), 'region'),
        (lambda: Region((0.0,) * 3, (1.0,) * 3, 'map', 'front'), 'region'),
        (lambda: Region((float('nan'),) * 3, (1.0,) * 3, 'map'), 'region'),
    ],
)
def test_a_wrong_query_names_its_field(make: Callable[[], object], field: str) -> None:
    with pytest.raises(ValueError, match=f'{field}: expected'):
        make()
