# SPDX-License-Identifier: Apache-2.0
"""The writer thread writes everything, alone, and never makes others wait."""

from __future__ import annotations

import threading

from memory_notes import one_of_each, said, told
from writer_place import event, Place, RETRY_S, TIMEOUT_S

from oxygen_ros.memory.audit.audit_chain import AuditRecord, segment_paths
from oxygen_ros.memory.audit.audit_log import AuditLog
from oxygen_ros.memory.audit.audit_records import find_records
from oxygen_ros.memory.episodes.store import EpisodicStore
from oxygen_ros.runtime.memory_writer import MemoryWriter


def test_everything_is_written_by_the_writer_thread_alone(
    writer: MemoryWriter, place: Place
) -> None:
    for number in range(1, 20):
        for note in one_of_each(number):
            assert writer.put(note)
        assert writer.put(event(number))
    assert writer.flush(TIMEOUT_S)
    assert writer.status().is_ok
    assert writer.stop(TIMEOUT_S)
    assert place.threads == {writer._thread.ident}
    assert threading.get_ident() not in place.threads
    assert place.kinds() == ['segment', *['mode'] * 19, 'close']
    assert len([text for text in place.texts() if text.startswith('utterance')]) == 19
    status = writer.status()
    assert status.store is not None
    assert (status.store.num_written, status.store.num_dropped) == (4 * 19, {})


def test_putting_never_waits_for_the_disk(place: Place) -> None:
    gate, late = threading.Event(), list[bool]()

    def slow(run: int | None) -> EpisodicStore:
        late.append(not gate.wait(TIMEOUT_S))
        return place.open_store(run)

    writer = MemoryWriter(slow, None)
    writer.start()
    for number in range(1, 1_001):
        writer.put(said(number, 'hello'))
    gate.set()  # until here there is no store, and who waited for one would still do so
    assert writer.flush(TIMEOUT_S)
    assert late == [False]
    assert writer.stop(TIMEOUT_S)


def test_what_is_not_configured_is_not_taken(place: Place) -> None:
    writer = MemoryWriter(None, place.open_audit)
    writer.start()
    assert not writer.put(said(1, 'hello'))
    assert writer.put(event(1))
    assert writer.status().store is None
    assert writer.stop(TIMEOUT_S)


def test_one_bad_note_does_not_keep_the_others_back(writer: MemoryWriter, place: Place) -> None:
    writer.put(said(1, 'before'))
    writer.put(told(2**62, 'beyond 64 bits'))  # its stamp
    writer.put(said(3, 'after'))
    writer.put(AuditRecord('gossip', 0))
    writer.put(event(1))
    assert writer.flush(TIMEOUT_S)
    assert place.texts() == ['before', 'after']
    status = writer.status()
    assert status.store is not None and status.audit is not None
    assert (status.store.num_rejected, status.audit.num_rejected) == (1, 1)
    assert 'too large' in status.store.rejection
    assert 'gossip' in status.audit.rejection


def test_what_was_dropped_from_the_log_is_counted_in_the_log(place: Place) -> None:
    gate = threading.Event()

    def late() -> AuditLog:
        gate.wait(TIMEOUT_S)
        return place.open_audit()

    writer = MemoryWriter(None, late, max_records=10, retry_s=RETRY_S)
    writer.start()
    for number in range(30):
        writer.put(event(number, 'chunk'))
    for number in range(3):
        assert writer.put(event(number, 'fault'))
    gate.set()
    assert writer.flush(TIMEOUT_S)
    writer.put(event(99, 'chunk'))
    assert writer.stop(TIMEOUT_S)
    records = [fields for _, fields in find_records(segment_paths(place.audit_path))]
    assert [fields['kind'] for fields in records] == [
        'segment',
        'gap',
        *['chunk'] * 7,
        *['fault'] * 3,
        'chunk',
        'close',
    ]
    assert records[1]['body'] == {'dropped': {'chunk': 23}}


def test_a_stop_gives_up_in_time_when_nothing_can_be_written(place: Place) -> None:
    place.store_path.mkdir()
    writer = MemoryWriter(place.open_store, None, retry_s=RETRY_S)
    writer.start()
    writer.put(said(1, 'never'))
    assert not writer.stop(0.2)  # returns, though the note can never be written
    writer._thread.join(TIMEOUT_S)
    assert not writer._thread.is_alive()
