# SPDX-License-Identifier: Apache-2.0
"""Scenes, provenances and notes for the tests of the store."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oxygen_ros.memory.episodes.records import (
    ChunkNote,
    InstructionNote,
    Note,
    SceneNote,
    UtteranceNote,
)
from oxygen_ros.types import Provenance, SceneObject, SceneRelation, SceneUpdate

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def provenance(number: int) -> Provenance:
    """Return the provenance of observation `number`, one a second."""
    stamp = START + number * SECOND
    return Provenance(number, stamp, ('front', 'left'), (stamp, stamp - 5), stamp - 9, 'c0' * 32)


def known(
    object_id: int,
    number: int,
    label: str = 'cup',
    *attributes: str,
    camera: str = 'front',
    box: tuple[float, float, float, float] | None = (0, 0, 10, 10),
    position: tuple[float, float, float] | None = None,
    frame_id: str = 'map',
) -> SceneObject:
    """Return an object seen in observation `number`."""
    stamp = START + number * SECOND
    return SceneObject(
        object_id,
        label,
        attributes,
        0.5,
        camera,
        box,
        frame_id if position else '',
        position,
        stamp,
        stamp,
        provenance(number),
    )


def scene(
    number: int, *objects: SceneObject, relations: tuple[tuple[int, str, int], ...] = ()
) -> SceneNote:
    """Return what was remembered after observation `number`."""
    edges = tuple(SceneRelation(*triple, provenance(number)) for triple in relations)
    return SceneNote(
        SceneUpdate(number, START + number * SECOND, objects, edges, provenance(number))
    )


def said(number: int, text: str) -> UtteranceNote:
    """Return an utterance."""
    return UtteranceNote(
        text,
        START + number * SECOND,
        provenance(number),
        number,
        'stop',
        'what is there?',
        'unverified',
        (3, 4),
    )


def told(number: int, text: str) -> InstructionNote:
    """Return an instruction."""
    return InstructionNote(text, START + number * SECOND, '~/set_instruction')


def chunk(number: int) -> ChunkNote:
    """Return the summary of a chunk."""
    return ChunkNote(number, START + number * SECOND, 16, 20_000_000, 12.5, provenance(number))


def with_place(note: SceneNote, *values: float) -> SceneNote:
    """Return the note with a place embedding."""
    return replace(note, place=np.array(values, dtype=np.float32))


def one_of_each(number: int) -> list[Note]:
    """Return one note of each kind."""
    return [
        scene(number, known(1, number), known(2, number, 'table'), relations=((1, 'on', 2),)),
        said(number, f'utterance {number}'),
        told(number, f'instruction {number}'),
        chunk(number),
    ]
