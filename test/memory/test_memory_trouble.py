# SPDX-License-Identifier: Apache-2.0
"""Whatever the disk does, nothing that was stored is lost, and writing recovers by itself."""

from __future__ import annotations

import resource

from memory_notes import said
import pytest
from writer_place import event, Place, RETRY_S, TIMEOUT_S, wait_for

from oxygen_ros.memory.audit.audit_chain import AuditRecord
from oxygen_ros.memory.audit.audit_log import AuditLog
from oxygen_ros.memory.episodes.store import EpisodicStore
from oxygen_ros.memory.errors import AuditUnavailable, StoreUnavailable
from oxygen_ros.runtime.memory_writer import MemoryWriter


def test_a_store_that_cannot_be_opened_is_told_and_opened_later(place: Place) -> None:
    place.store_path.mkdir()  # a folder in the way
    writer = MemoryWriter(place.open_store, place.open_audit, retry_s=RETRY_S)
    writer.start()
    writer.put(said(1, 'patience'))
    writer.put(event(1))
    wait_for(lambda: not writer.status().is_ok)
    store = writer.status().store
    assert store is not None
    assert str(place.store_path) in store.fault
    wait_for(lambda: writer.status().audit.num_written == 1)  # type: ignore[union-attr]
    place.store_path.rmdir()
    assert writer.flush(TIMEOUT_S)
    wait_for(lambda: writer.status().is_ok)
    assert writer.stop(TIMEOUT_S)
    assert place.texts() == ['patience']


def test_a_full_disk_stops_nobody_and_loses_nothing_that_was_stored(
    writer: MemoryWriter, place: Place
) -> None:
    writer.put(said(1, 'stored'))
    writer.put(event(1))
    assert writer.flush(TIMEOUT_S)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(
        path.stat().st_size for path in place.store_path.parent.rglob('*') if path.is_file()
    )
    try:
        # The kernel itself refuses to let any file of this process grow.
        resource.setrlimit(resource.RLIMIT_FSIZE, (min(largest, 600), hard))
        for number in range(2, 40):
            assert writer.put(said(number, f'waiting {number} ' * 40))
            assert writer.put(event(number))
        wait_for(
            lambda: (
                not writer.status().store.is_ok  # type: ignore[union-attr]
                and not writer.status().audit.is_ok
            )
        )  # type: ignore[union-attr]
        assert place.texts()[0] == 'stored'
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert writer.flush(TIMEOUT_S)
    wait_for(lambda: writer.status().is_ok)
    assert writer.stop(TIMEOUT_S)
    assert len(place.texts()) == 39
    assert [kind for kind in place.kinds() if kind != 'segment'] == [*['mode'] * 39, 'close']


def test_a_read_only_store_recovers_and_goes_on_with_its_run(place: Place) -> None:
    stores: list[EpisodicStore] = []

    def open_store(run: int | None) -> EpisodicStore:
        store = place.open_store(run)
        stores.append(store)
        store._connection.execute(f'PRAGMA query_only = {int(len(stores) < 3)}')
        return store

    writer = MemoryWriter(open_store, None, retry_s=RETRY_S)
    writer.start()
    writer.put(said(1, 'hello'))
    wait_for(lambda: 'readonly' in writer.status().store.fault)  # type: ignore[union-attr]
    assert writer.flush(TIMEOUT_S)
    assert writer.stop(TIMEOUT_S)
    assert place.texts() == ['hello']
    assert place.runs == [None, 1, 1]


def test_a_failing_disk_in_the_middle_of_everything_loses_nothing(
    writer: MemoryWriter, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble = iter([True, False, True, True, False, False] * 50)
    write, append = EpisodicStore.write, AuditLog.append

    def write_or_not(self: EpisodicStore, notes: list[object]) -> None:
        if next(trouble, False):
            raise StoreUnavailable('disk I/O error')
        write(self, notes)  # type: ignore[arg-type]

    def append_or_not(self: AuditLog, records: list[AuditRecord]) -> None:
        if next(trouble, False):
            raise AuditUnavailable('Input/output error')
        append(self, records)

    monkeypatch.setattr(EpisodicStore, 'write', write_or_not)
    monkeypatch.setattr(AuditLog, 'append', append_or_not)
    for number in range(1, 60):
        writer.put(said(number, f'{number}'))
        writer.put(event(number))
        if number % 3 == 0:  # several in a transaction, and many transactions
            assert writer.flush(TIMEOUT_S)
    assert writer.stop(TIMEOUT_S)
    assert place.texts() == [f'{number}' for number in range(1, 60)]
    assert place.kinds().count('mode') == 59
