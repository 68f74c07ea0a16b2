# SPDX-License-Identifier: Apache-2.0
"""What can be written to the episodic store, one value for each thing that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from ...types import ActionChunk, FloatArray, Provenance, SceneUpdate, TextResult


class EntryKind(IntEnum):
    """What an entry of the store is about."""

    OBJECT = 1
    RELATION = 2
    UTTERANCE = 3
    INSTRUCTION = 4
    CHUNK = 5


@dataclass(frozen=True, slots=True)
class SceneNote:
    """A scene graph after an update."""

    update: SceneUpdate
    place: FloatArray | None = None  # [dims], embedding of the place that the dense read gave
    verdicts: Mapping[int, str] = field(default_factory=dict)  # by object id


@dataclass(frozen=True, slots=True)
class PlaceNote:
    """The place embedding of an observation of which nothing else need be known."""

    provenance: Provenance
    place: FloatArray  # [dims]


@dataclass(frozen=True, slots=True)
class UtteranceNote:
    """Something the robot said."""

    text: str
    stamp_ns: int  # ROS time at its end
    provenance: Provenance
    request_id: int = 0
    finish_reason: str = ''
    question: str = ''
    verdict: str = ''
    cited: tuple[int, ...] = ()  # entries that were given to the model


@dataclass(frozen=True, slots=True)
class InstructionNote:
    """Something the robot was told."""

    text: str
    stamp_ns: int  # ROS time
    source: str  # topic, service or parameter that it came by


@dataclass(frozen=True, slots=True)
class ChunkNote:
    """A summary of an action chunk; its targets are on `~/target`, its hash in the audit log."""

    chunk_id: int
    stamp_ns: int  # of step 0 (ROS time)
    num_steps: int
    step_ns: int
    pass_ms: float
    provenance: Provenance


Note: TypeAlias = SceneNote | PlaceNote | UtteranceNote | InstructionNote | ChunkNote


def chunk_note(chunk: ActionChunk) -> ChunkNote:
    """Summarise a chunk."""
    return ChunkNote(
        chunk.chunk_id,
        chunk.start_stamp_ns,
        len(chunk.values),
        chunk.step_ns,
        (chunk.pass_ended_ns - chunk.pass_started_ns) / 1e6,
        chunk.provenance,
    )


def utterance_note(
    result: TextResult,
    stamp_ns: int,
    question: str = '',
    verdict: str = '',
    cited: tuple[int, ...] = (),
) -> UtteranceNote | None:
    """Return a note of what was said; None where nothing was: an utterance needs a provenance.

    :param stamp_ns: ROS time at the end of the request.
    """
    if result.provenance is None or not result.text:
        return None
    return UtteranceNote(
        result.text,
        stamp_ns,
        result.provenance,
        result.request_id,
        result.finish_reason.value,
        question,
        verdict,
        cited,
    )
