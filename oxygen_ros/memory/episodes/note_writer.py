# SPDX-License-Identifier: Apache-2.0
"""How each note becomes rows of the store. Runs inside the store's transaction and thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import json
import math
import sqlite3

import numpy as np

from ...types import FloatArray, Provenance, SceneObject, SceneRelation
from ..limits import bounded, bounded_name, MAX_PLACE_DIMS
from ..scene.matching import overlap
from .records import (
    ChunkNote,
    EntryKind,
    InstructionNote,
    Note,
    PlaceNote,
    SceneNote,
    UtteranceNote,
)

SAME_PLACE_M = 0.05
SAME_BOX_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class _OpenEntry:
    """The newest entry of an object or a relation, which grows while its state lasts."""

    entry: int
    first_ns: int
    state: tuple[object, ...]
    scene_object: SceneObject | None = None


def _finite(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    return values if values is not None and all(map(math.isfinite, values)) else None


def _same_state(one: SceneObject, other: SceneObject) -> bool:
    here, there = _finite(one.position_m), _finite(other.position_m)
    if here and there and one.frame_id == other.frame_id:
        return math.dist(here, there) <= SAME_PLACE_M
    if (here is None) != (there is None) or (one.box_px is None) != (other.box_px is None):
        return False
    return (
        one.box_px is None
        or other.box_px is None
        or overlap(one.box_px, other.box_px) >= SAME_BOX_OVERLAP
    )


class NoteWriter:
    """Writes notes on one connection.

    :param run: row of the activation that the notes belong to.
    :param base_ns: ROS time from which the spatial index counts seconds.
    :param entry_span_s: the longest time of one entry, so that ids keep the order of time.
    """

    def __init__(
        self, connection: sqlite3.Connection, run: int, base_ns: int, entry_span_s: float
    ) -> None:
        self._connection = connection
        self._run = run
        self._base_ns = base_ns
        self._span_ns = int(entry_span_s * 1e9)
        self._open: dict[tuple[object, ...], _OpenEntry] = {}

    def snapshot(self) -> dict[tuple[object, ...], _OpenEntry]:
        """Return what to give to `restore` when the transaction fails."""
        return dict(self._open)

    def restore(self, snapshot: dict[tuple[object, ...], _OpenEntry]) -> None:
        """Forget entries that were rolled back."""
        self._open = snapshot

    def write(self, note: Note) -> None:
        """Write one note.

        :raises ValueError: the note cannot be stored, whatever the disk; names the field.
        """
        if isinstance(note, SceneNote):
            self._write_scene(note)
        elif isinstance(note, PlaceNote):
            self._observation(note.provenance, note.place)
        elif isinstance(note, UtteranceNote):
            detail = {
                'request_id': note.request_id,
                'finish_reason': note.finish_reason,
                'question': bounded(note.question),
                'cited': list(note.cited[:64]),
            }
            self._entry(
                EntryKind.UTTERANCE,
                self._observation(note.provenance),
                note.stamp_ns,
                note.text,
                detail,
                note.verdict,
            )
        elif isinstance(note, InstructionNote):
            self._entry(
                EntryKind.INSTRUCTION,
                None,
                note.stamp_ns,
                note.text,
                {'source': bounded_name(note.source)},
            )
        else:
            self._write_chunk(note)

    def _write_chunk(self, note: ChunkNote) -> None:
        detail = {
            'chunk_id': note.chunk_id,
            'num_steps': note.num_steps,
            'step_ns': note.step_ns,
            'pass_ms': round(note.pass_ms, 3),
        }
        self._entry(EntryKind.CHUNK, self._observation(note.provenance), note.stamp_ns, '', detail)

    def _write_scene(self, note: SceneNote) -> None:
        update = note.update
        if update.provenance is None:
            raise ValueError('scene: expected a provenance, got none')
        observation = self._observation(update.provenance, note.place)
        labels = {known.object_id: known.label for known in update.objects}
        present: set[tuple[object, ...]] = set()
        for known in update.objects:
            present.add(('object', known.object_id))
            if known.last_seen_ns == update.stamp_ns:
                verdict = note.verdicts.get(known.object_id, '')
                self._write_object(known, observation, update.stamp_ns, verdict)
        for relation in update.relations:
            present.add(('relation', relation.subject_id, relation.predicate, relation.object_id))
            if relation.provenance == update.provenance:
                self._write_relation(relation, labels, observation, update.stamp_ns)
        self._open = {key: entry for key, entry in self._open.items() if key in present}

    def _write_object(
        self, known: SceneObject, observation: int, stamp_ns: int, verdict: str
    ) -> None:
        key = ('object', known.object_id)
        state = (known.label, known.attributes, known.camera, known.frame_id, verdict)
        old = self._open.get(key)
        if (
            old
            and old.scene_object
            and old.state == state
            and _same_state(old.scene_object, known)
            and self._extend(old, observation, stamp_ns)
        ):
            return
        attributes = [bounded_name(word) for word in known.attributes[:16]]
        label, camera, frame_id = map(bounded_name, (known.label, known.camera, known.frame_id))
        entry = self._entry(
            EntryKind.OBJECT,
            observation,
            stamp_ns,
            ' '.join([*attributes, label, camera]),
            {'first_seen_ns': known.first_seen_ns},
            verdict,
        )
        box, position = _finite(known.box_px), _finite(known.position_m)
        confidence = known.confidence if math.isfinite(known.confidence) else None
        self._connection.execute(
            'INSERT INTO object VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
            (
                entry,
                known.object_id,
                label,
                json.dumps(attributes),
                confidence,
                camera,
                *(box or (None,) * 4),
                frame_id,
                *(position or (None,) * 3),
            ),
        )
        seconds = (stamp_ns - self._base_ns) / 1e9
        if position:
            x, y, z = position
            self._connection.execute(
                'INSERT INTO space VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
                (entry, x, x, y, y, z, z, seconds, seconds, frame_id),
            )
        if box:
            left, top, width, height = box
            self._connection.execute(
                'INSERT INTO image VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
                (
                    entry,
                    left,
                    left + max(width, 0.0),
                    top,
                    top + max(height, 0.0),
                    seconds,
                    seconds,
                    camera,
                ),
            )
        self._open[key] = _OpenEntry(entry, stamp_ns, state, known)

    def _write_relation(
        self, relation: SceneRelation, labels: dict[int, str], observation: int, stamp_ns: int
    ) -> None:
        key = ('relation', relation.subject_id, relation.predicate, relation.object_id)
        subject, predicate, other = map(
            bounded_name,
            (
                labels.get(relation.subject_id, ''),
                relation.predicate,
                labels.get(relation.object_id, ''),
            ),
        )
        old = self._open.get(key)
        if old and self._extend(old, observation, stamp_ns):
            return
        entry = self._entry(
            EntryKind.RELATION, observation, stamp_ns, f'{subject} {predicate} {other}', {}
        )
        self._connection.execute(
            'INSERT INTO relation VALUES (?, ?, ?, ?, ?, ?)',
            (entry, relation.subject_id, predicate, relation.object_id, subject, other),
        )
        self._open[key] = _OpenEntry(entry, stamp_ns, ())

    def _extend(self, old: _OpenEntry, observation: int, stamp_ns: int) -> bool:
        """Let an entry last until now; False where it cannot and a new one is due."""
        if not 0 <= stamp_ns - old.first_ns <= self._span_ns:
            return False
        seconds = (stamp_ns - self._base_ns) / 1e9
        changed = self._connection.execute(
            'UPDATE entry SET last_ns = ?, last_observation = ? WHERE id = ?',
            (stamp_ns, observation, old.entry),
        ).rowcount
        for table in ('space', 'image'):
            self._connection.execute(
                f'UPDATE {table} SET max_t = ? WHERE entry = ?', (seconds, old.entry)
            )
        return changed == 1  # 0: retention took it

    def _entry(
        self,
        kind: EntryKind,
        observation: int | None,
        stamp_ns: int,
        text: str,
        detail: Mapping[str, object],
        verdict: str = '',
    ) -> int:
        cursor = self._connection.execute(
            'INSERT INTO entry (kind, observation, last_observation, first_ns, last_ns, text, '
            'detail, verdict) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
            (
                int(kind),
                observation,
                observation,
                stamp_ns,
                stamp_ns,
                bounded(text),
                json.dumps(detail),
                bounded_name(verdict),
            ),
        )
        return int(cursor.lastrowid or 0)

    def _observation(self, provenance: Provenance, place: FloatArray | None = None) -> int:
        if place is not None and (place.ndim != 1 or place.size > MAX_PLACE_DIMS):
            raise ValueError(f'place: expected [up to {MAX_PLACE_DIMS}], got {place.shape}')
        blob = None if place is None else np.asarray(place, dtype='<f4').tobytes()
        row = self._connection.execute(
            'SELECT id FROM observation WHERE run = ? AND observation_id = ?',
            (self._run, provenance.observation_id),
        ).fetchone()
        if row is not None:
            if blob is not None:
                self._connection.execute(
                    'UPDATE observation SET place = ? WHERE id = ?', (blob, row[0])
                )
            return int(row[0])
        cameras = {
            bounded_name(camera): stamp
            for camera, stamp in zip(provenance.cameras[:64], provenance.camera_stamps_ns)
        }
        cursor = self._connection.execute(
            'INSERT INTO observation (run, observation_id, stamp_ns, cameras, state_stamp_ns, '
            'model_checksum, place) VALUES (?, ?, ?, ?, ?, ?, ?)',
            (
                self._run,
                provenance.observation_id,
                provenance.stamp_ns,
                json.dumps(cameras),
                provenance.state_stamp_ns,
                bounded_name(provenance.model_checksum),
                blob,
            ),
        )
        return int(cursor.lastrowid or 0)
