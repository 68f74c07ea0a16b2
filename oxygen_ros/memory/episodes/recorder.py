# SPDX-License-Identifier: Apache-2.0
"""One call for each thing that happens: its note for the store, its record for the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...types import ActionChunk, FloatArray, SceneUpdate, TextResult
from ..audit.audit_chain import AuditContext, AuditRecord
from ..audit.audit_records import (
    chunk_record,
    event_record,
    parameters_hash,
    scene_record,
    utterance_record,
)
from .records import chunk_note, InstructionNote, Note, SceneNote, utterance_note


class MemoryRecorder:
    """Hands notes and records on; any thread may call it, and no call waits for a disk.

    :param put: takes what is to be written; must return at once.
    :param context: model, parameters and software at the start.
    """

    def __init__(self, put: Callable[[Note | AuditRecord], object], context: AuditContext) -> None:
        self._put = put
        self._context = context

    @property
    def context(self) -> AuditContext:
        """Model, parameters and software as they are now."""
        return self._context

    def chunk(self, chunk: ActionChunk) -> None:
        """Record an action chunk."""
        self._put(chunk_record(chunk, self._context))
        self._put(chunk_note(chunk))

    def utterance(
        self,
        result: TextResult,
        stamp_ns: int,
        *,
        question: str = '',
        verdict: str = '',
        reasons: Sequence[str] = (),
        cited: Sequence[int] = (),
    ) -> None:
        """Record what was said, or that a request ended without a word.

        :param stamp_ns: ROS time at its end.
        :param verdict: what the facts say of it, with the reasons.
        :param cited: entries of the store that were given to the model.
        """
        self._put(utterance_record(result, stamp_ns, self._context, verdict, reasons, cited))
        note = utterance_note(result, stamp_ns, question, verdict, tuple(cited))
        if note is not None:
            self._put(note)

    def scene(
        self,
        update: SceneUpdate,
        text: str,
        *,
        place: FloatArray | None = None,
        verdicts: Mapping[int, str] | None = None,
    ) -> None:
        """Record a scene update.

        :param text: what the model wrote.
        :param place: embedding of the place, [dims].
        :param verdicts: what the facts say of each object, by id.
        """
        self._put(scene_record(update, text, self._context, verdicts))
        if update.provenance is not None:
            self._put(SceneNote(update, place, verdicts or {}))

    def instruction(self, text: str, stamp_ns: int, source: str) -> None:
        """Record what the robot was told, and by which topic, service or parameter."""
        self._put(event_record('instruction', stamp_ns, self._context, text=text, source=source))
        self._put(InstructionNote(text, stamp_ns, source))

    def parameters(self, parameters: Mapping[str, object], stamp_ns: int) -> None:
        """Record the parameter set; what follows carries its hash."""
        self._context = replace(self._context, parameters_hash=parameters_hash(parameters))
        self._put(event_record('parameters', stamp_ns, self._context, parameters=parameters))

    def mode(self, mode: str, stamp_ns: int, reason: str = '') -> None:
        """Record a change of mode: armed, held, stopped, taken over, a lifecycle state."""
        self._put(event_record('mode', stamp_ns, self._context, mode=mode, reason=reason))

    def fault(self, what: str, stamp_ns: int, detail: str = '') -> None:
        """Record a fault."""
        self._put(event_record('fault', stamp_ns, self._context, what=what, detail=detail))
