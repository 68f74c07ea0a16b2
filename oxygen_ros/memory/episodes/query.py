# SPDX-License-Identifier: Apache-2.0
"""Questions to the store: by words, label, region, time, relation; answers in bounded pages.

Everything that comes from outside goes to SQLite as a parameter, never as part of a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math

from ..limits import bounded, bounded_name, MAX_PAGE
from .records import EntryKind


@dataclass(frozen=True, slots=True)
class Region:
    """A box in a frame (m) or in a camera's image (px), sides included."""

    low: tuple[float, ...]  # x, y, z of the frame, or x, y of the image
    high: tuple[float, ...]
    frame_id: str = ''
    camera: str = ''

    def __post_init__(self) -> None:
        dims = 2 if self.camera else 3
        if bool(self.camera) == bool(self.frame_id):
            raise ValueError(
                f'region: expected a frame or a camera, got frame {self.frame_id!r} '
                f'and camera {self.camera!r}'
            )
        if len(self.low) != dims or len(self.high) != dims:
            raise ValueError(f'region: expected {dims} coordinates, got {self.low}, {self.high}')
        if not all(map(math.isfinite, (*self.low, *self.high))):
            raise ValueError(f'region: expected finite numbers, got {self.low}, {self.high}')


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """What to look for; whatever is left out does not narrow the search.

    :raises ValueError: names the field, what was expected and what came.
    """

    words: str = ''  # all of them occur; the last one may be the start of a word
    any_words: bool = False  # one of them is enough
    kind: EntryKind | None = None
    label: str = ''  # of an object, or of the subject of a relation
    predicate: str = ''
    other_label: str = ''  # of the object of a relation
    region: Region | None = None
    place: tuple[int, int] | None = None  # seen where it looks as in this (run, observation)
    start_ns: int | None = None  # lasted at or after (ROS time)
    end_ns: int | None = None  # began at or before (ROS time)
    limit: int = 20
    before: int | None = None  # only entries with smaller ids: the next page

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_PAGE:
            raise ValueError(f'limit: expected 1 to {MAX_PAGE}, got {self.limit}')
        values = {name: getattr(self, name) for name in ('start_ns', 'end_ns', 'before')}
        values |= dict(zip(('place run', 'place observation'), self.place or ()))
        for name, value in values.items():
            if value is not None and not -(2**63) <= value < 2**63:
                raise ValueError(f'{name}: expected a 64-bit number, got {value}')


def words_expression(words: str, any_words: bool = False) -> str:
    """Return the index's own expression for plain words; '' where there are none.

    Each word is quoted, so that nothing in it is an operator.
    """
    parts = ['"' + part.replace('"', '""') + '"' for part in bounded(words).split()[:32]]
    if parts and not any_words:
        parts[-1] += '*'
    return (' OR ' if any_words else ' ').join(parts)


def select_statement(
    query: MemoryQuery, base_ns: int, after: int | None = None, near: Sequence[int] = ()
) -> tuple[str, list[object]]:
    """Return the statement that answers a query, newest entry first, and its parameters.

    :param after: look at entries with greater ids only, one by one, without the index of regions.
    :param near: rows of the observations that a query by place is about.
    """
    where: list[str] = []
    values: list[object] = []

    def add(condition: str, *new: object) -> None:
        where.append(condition)
        values.extend(new)

    if query.words:
        add(
            'e.id IN (SELECT rowid FROM words WHERE words MATCH ? AND rowid > ?)',
            words_expression(query.words, query.any_words),
            0 if after is None else after,
        )
    if query.kind is not None:
        add('e.kind = ?', int(query.kind))
    relation_asked = bool(query.predicate or query.other_label)
    if query.label:
        label = bounded_name(query.label)
        if relation_asked:
            add('r.subject_label = ?', label)
        elif query.region:
            add('o.label = ?', label)
        else:
            add('e.id IN (SELECT entry FROM object WHERE label = ?)', label)
    if query.predicate:
        add('r.predicate = ?', bounded_name(query.predicate))
    if query.other_label:
        add('r.object_label = ?', bounded_name(query.other_label))
    if query.region:
        _add_region(query.region, add)
        if after is None:
            _add_region_index(query, query.region, base_ns, add)
    if after is not None:
        add('e.id > ?', after)
    if query.place is not None:
        # An entry lasts from its first observation to its newest, and rows count up with time.
        during = ' OR '.join(['? BETWEEN e.observation AND e.last_observation'] * len(near))
        add(f'({during or "0"})', *near)
    if query.start_ns is not None:
        add('e.last_ns >= ?', query.start_ns)
    if query.end_ns is not None:
        add('e.first_ns <= ?', query.end_ns)
    newest_first = 'r.entry' if relation_asked else 'e.id'
    if query.before is not None:
        add(f'{newest_first} < ?', query.before)
    join = 'JOIN' if relation_asked else 'LEFT JOIN'
    statement = f"""
        SELECT e.id AS entry, e.kind, e.first_ns, e.last_ns, e.text, e.detail, e.verdict,
            o.object_id, o.label, o.attributes, o.confidence, o.camera, o.box_x, o.box_y,
            o.box_width, o.box_height, o.frame_id, o.x, o.y, o.z,
            r.subject_id, r.predicate, r.object_id AS other_id, r.subject_label, r.object_label,
            b.observation_id, b.stamp_ns, b.cameras, b.state_stamp_ns, b.model_checksum, b.run
        FROM entry e LEFT JOIN object o ON o.entry = e.id {join} relation r ON r.entry = e.id
            LEFT JOIN observation b ON b.id = e.observation
        WHERE {' AND '.join(where) or '1'} ORDER BY {newest_first} DESC LIMIT ?"""
    # One more than asked for tells whether there is a next page.
    return statement, [*values, query.limit + 1]


def _bounds(region: Region) -> list[float]:
    return [value for low, high in zip(region.low, region.high) for value in (low, high)]


def _add_region(region: Region, add: Callable[..., None]) -> None:
    """Ask the exact columns: the index rounds outwards to 32 bits."""
    if region.frame_id:
        add(
            'o.frame_id = ? AND o.x BETWEEN ? AND ? AND o.y BETWEEN ? AND ? '
            'AND o.z BETWEEN ? AND ?',
            bounded_name(region.frame_id),
            *_bounds(region),
        )
    else:
        add(
            'o.camera = ? AND o.box_x + o.box_width >= ? AND o.box_x <= ? '
            'AND o.box_y + o.box_height >= ? AND o.box_y <= ?',
            bounded_name(region.camera),
            *_bounds(region),
        )


def _add_region_index(
    query: MemoryQuery, region: Region, base_ns: int, add: Callable[..., None]
) -> None:
    start = -math.inf if query.start_ns is None else (query.start_ns - base_ns) / 1e9
    end = math.inf if query.end_ns is None else (query.end_ns - base_ns) / 1e9
    if region.frame_id:
        add(
            'e.id IN (SELECT entry FROM space WHERE max_x >= ? AND min_x <= ? AND max_y >= ? '
            'AND min_y <= ? AND max_z >= ? AND min_z <= ? AND max_t >= ? AND min_t <= ? '
            'AND frame_id = ?)',
            *_bounds(region),
            start,
            end,
            bounded_name(region.frame_id),
        )
    else:
        add(
            'e.id IN (SELECT entry FROM image WHERE max_u >= ? AND min_u <= ? AND max_v >= ? '
            'AND min_v <= ? AND max_t >= ? AND min_t <= ? AND camera = ?)',
            *_bounds(region),
            start,
            end,
            bounded_name(region.camera),
        )
