# SPDX-License-Identifier: Apache-2.0
"""One call for each event makes what the store and the audit log get."""

from __future__ import annotations

from memory_notes import known, provenance, scene

from oxygen_ros.memory.audit.audit_chain import AuditContext, AuditRecord
from oxygen_ros.memory.audit.audit_records import parameters_hash
from oxygen_ros.memory.episodes.recorder import MemoryRecorder
from oxygen_ros.memory.episodes.records import InstructionNote, Note, SceneNote, UtteranceNote
from oxygen_ros.types import FinishReason, TaskType, TextResult


def test_the_recorder_makes_a_note_and_a_record_of_each_event(audit_context: AuditContext) -> None:
    items: list[Note | AuditRecord] = []
    recorder = MemoryRecorder(items.append, audit_context)
    recorder.parameters({'rate_hz': 50.0}, 1)
    recorder.instruction('stack the cups', 2, '~/set_instruction')
    recorder.mode('armed', 3)
    recorder.scene(scene(1, known(1, 1)).update, 'cup 0 0000\n.', verdicts={1: 'contradicted'})
    recorder.fault('camera front is late', 4)
    records = [item for item in items if isinstance(item, AuditRecord)]
    assert [record.kind for record in records] == [
        'parameters',
        'instruction',
        'mode',
        'scene',
        'fault',
    ]
    assert {record.context for record in records} == {recorder.context}
    assert recorder.context.parameters_hash == parameters_hash({'rate_hz': 50.0})
    assert recorder.context.model_checksum == audit_context.model_checksum
    notes = [item for item in items if not isinstance(item, AuditRecord)]
    assert notes == [
        InstructionNote('stack the cups', 2, '~/set_instruction'),
        SceneNote(scene(1, known(1, 1)).update, None, {1: 'contradicted'}),
    ]


def test_a_request_that_ended_without_a_word_is_in_the_log_alone(
    audit_context: AuditContext,
) -> None:
    items: list[Note | AuditRecord] = []
    refused = TextResult(
        1, TaskType.DIALOGUE, '', (), FinishReason.REFUSED, 'too long', 1, None, 2, None
    )
    MemoryRecorder(items.append, audit_context).utterance(refused, 5)
    (record,) = items
    assert isinstance(record, AuditRecord)
    assert record.body['message'] == 'too long'


def test_what_was_said_is_in_both(audit_context: AuditContext) -> None:
    items: list[Note | AuditRecord] = []
    result = TextResult(
        1, TaskType.DIALOGUE, 'a cup', (1, 2), FinishReason.STOP, '', 1, 2, 3, provenance(4)
    )
    MemoryRecorder(items.append, audit_context).utterance(
        result, 5, question='what?', verdict='supported', reasons=['facts.yaml:3'], cited=[8]
    )
    record, note = items
    assert isinstance(record, AuditRecord)
    assert (record.body['verdict'], record.body['reasons']) == ('supported', ['facts.yaml:3'])
    assert isinstance(note, UtteranceNote)
    assert (note.question, note.verdict, note.cited) == ('what?', 'supported', (8,))
