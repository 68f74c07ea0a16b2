# SPDX-License-Identifier: Apache-2.0
"""The audit log: what a record holds, rotation, syncs, and what a crash leaves."""

from __future__ import annotations

from collections.abc import Callable
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from oxygen_ros.memory.audit import audit_log
from oxygen_ros.memory.audit.audit_chain import AuditContext, AuditRecord, Link, segment_paths
from oxygen_ros.memory.audit.audit_head import HEAD_NAME, read_head
from oxygen_ros.memory.audit.audit_log import AuditLog, AuditRules
from oxygen_ros.memory.audit.audit_records import (
    chunk_record,
    event_record,
    find_records,
    parameters_hash,
    scene_record,
    utterance_record,
)
from oxygen_ros.memory.audit.audit_verify import verify
from oxygen_ros.memory.errors import AuditUnavailable
from oxygen_ros.types import (
    ActionChunk,
    FinishReason,
    Provenance,
    SceneObject,
    SceneUpdate,
    TaskType,
    TextResult,
)

SEEN = Provenance(7, 1_000, ('front', 'left'), (1_000, 990), 995, 'c0ffee', 'f00')


def event(number: int = 0) -> AuditRecord:
    """Return a record."""
    return AuditRecord('mode', number, {'mode': f'mode {number}'})


def test_records_name_observation_model_parameters_and_software(
    tmp_path: Path, audit_context: AuditContext
) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    chunk = ActionChunk(3, 1, values, 50, 1_005, 20, 40, 60, 90, SEEN)
    result = TextResult(
        9, TaskType.DIALOGUE, 'the cup is red', (1, 2, 3), FinishReason.STOP, '', 10, 20, 30, SEEN
    )
    update = SceneUpdate(2, 1_000, (SceneObject(1, 'cup'), SceneObject(2, 'mug')), (), SEEN)
    log = AuditLog(tmp_path, wall_ns=lambda: 77)
    log.append(
        [
            chunk_record(chunk, audit_context),
            utterance_record(result, 2_000, audit_context, 'contradicted', ['it is blue'], [4]),
            scene_record(update, 'cup 0 0000\n.', audit_context, {1: 'contradicted', 2: ''}),
            event_record('instruction', 2_500, audit_context, text='stop', source='~/x'),
        ]
    )
    log.close()
    records = [fields for _, fields in find_records(segment_paths(tmp_path))]
    assert [fields['kind'] for fields in records] == [
        'segment',
        'chunk',
        'utterance',
        'scene',
        'instruction',
        'close',
    ]
    for fields in records[1:5]:
        assert fields['model_checksum'] == audit_context.model_checksum
        assert fields['parameters_hash'] == audit_context.parameters_hash
        assert fields['software'] == '0.1.0'
        assert fields['wall_ns'] == 77
    for fields in records[1:4]:
        assert fields['prefix_hash'] == 'f00'
        assert fields['observation'] == {
            'id': 7,
            'stamp_ns': 1_000,
            'cameras': {'front': 1_000, 'left': 990},
            'state_stamp_ns': 995,
        }
    assert records[1]['body']['values_sha256'] == hashlib.sha256(values.tobytes()).hexdigest()
    assert records[1]['body']['chunk_id'] == 3
    assert records[2]['body']['verdict'] == 'contradicted'
    assert records[3]['body']['verdicts'] == {'1': 'contradicted'}
    assert records[5]['stamp_ns'] == 2_500


def test_records_are_found_by_observation_chunk_and_run(tmp_path: Path) -> None:
    for _ in range(2):
        log = AuditLog(tmp_path)
        log.append(
            [
                AuditRecord('chunk', 5, {'chunk_id': number}, {'id': number})
                for number in range(1, 4)
            ]
        )
        log.close()
    paths = segment_paths(tmp_path)
    assert [
        (run, fields['body']['chunk_id']) for run, fields in find_records(paths, observation_id=2)
    ] == [(1, 2), (2, 2)]
    assert [run for run, _ in find_records(paths, chunk_id=3, kind='chunk')] == [1, 2]
    assert list(find_records(paths, chunk_id=9)) == []


def test_the_chain_is_carried_over_files_and_runs(tmp_path: Path) -> None:
    for _ in range(3):
        log = AuditLog(tmp_path, AuditRules(max_file_bytes=4_096))
        for number in range(40):
            log.append([event(number)])
        log.close()
    paths = segment_paths(tmp_path)
    assert len(paths) > 6
    assert all(path.stat().st_size < 4_096 + 1_000 for path in paths)
    report = verify(paths)
    assert report.is_ok
    assert report.num_records == 3 * 41 + len(paths)


@pytest.mark.parametrize(('policy', 'num_syncs'), [('always', 10), ('interval', 3), ('never', 0)])
def test_the_disk_is_waited_for_by_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, num_syncs: int
) -> None:
    synced: list[int] = []
    now_s = [0.0]
    log = AuditLog(tmp_path, AuditRules(fsync=policy, interval_s=1.0), steady_s=lambda: now_s[0])
    monkeypatch.setattr('oxygen_ros.memory.audit.segment_file.os.fsync', synced.append)
    for number in range(10):
        now_s[0] += 0.3
        log.append([event(number)])
        if policy == 'interval':
            head = read_head(tmp_path / HEAD_NAME, None).link
            assert log.head.seq - head.seq < 4
    now_s[0] += 1.0
    log.tick()
    monkeypatch.undo()
    assert len(synced) == 2 * num_syncs  # the log, then its head
    assert read_head(tmp_path / HEAD_NAME, None).link == log.head
    log.close()


def test_a_failed_write_leaves_nothing_behind_and_may_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path)
    log.append([event(1)])
    (path,) = segment_paths(tmp_path)
    before, head = path.read_bytes(), log.head
    write = os.write

    def fill_up(file: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(28, 'No space left on device')
        return write(file, data[: len(data) // 2])

    monkeypatch.setattr('oxygen_ros.memory.audit.segment_file.os.write', fill_up)
    for _ in range(3):
        with pytest.raises(AuditUnavailable, match='No space left'):
            log.append([event(2), event(3)])
        assert path.read_bytes() == before
        assert log.head == head
    monkeypatch.undo()
    log.append([event(2), event(3)])
    log.close()
    assert verify([path]).num_records == 5


def test_a_part_that_could_not_be_cut_off_is_cut_off_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path)
    (path,) = segment_paths(tmp_path)
    size, write = path.stat().st_size, os.write

    def fail(*_: object) -> int:
        raise OSError(30, 'Read-only file system')

    def half(file: int, data: bytes) -> int:
        monkeypatch.setattr('oxygen_ros.memory.audit.segment_file.os.write', fail)
        return write(file, data[:10])

    monkeypatch.setattr('oxygen_ros.memory.audit.segment_file.os.write', half)
    monkeypatch.setattr('oxygen_ros.memory.audit.segment_file.os.ftruncate', fail)
    for _ in range(2):
        with pytest.raises(AuditUnavailable, match='Read-only'):
            log.append([event(1)])
        assert path.stat().st_size == size + 10
    monkeypatch.undo()
    log.append([event(1)])
    log.close()
    assert verify([path]).is_ok


def test_a_sync_that_fails_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path, AuditRules(fsync='always'))

    def fail(*_: object) -> None:
        raise OSError(5, 'Input/output error')

    monkeypatch.setattr(audit_log, 'write_head', fail)
    log.append([event(1)])
    assert 'Input/output' in log.sync_fault
    monkeypatch.undo()
    log.append([event(2)])
    assert log.sync_fault == ''
    log.close()
    assert verify(segment_paths(tmp_path)).num_records == 4


def test_two_writers_of_one_log_are_refused(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    with pytest.raises(AuditUnavailable, match='another process'):
        AuditLog(tmp_path)
    log.close()
    AuditLog(tmp_path).close()
    assert verify(segment_paths(tmp_path)).is_ok


def test_a_removed_file_is_noticed(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    segment_paths(tmp_path)[0].unlink()
    with pytest.raises(AuditUnavailable, match='removed'):
        log.append([event(1)])


def test_another_key_is_refused_for_the_same_folder(tmp_path: Path) -> None:
    AuditLog(tmp_path, AuditRules(key=b'k' * 16)).close()
    with pytest.raises(AuditUnavailable, match='new key'):
        AuditLog(tmp_path)


def test_a_record_that_is_too_long_or_of_unknown_kind_is_refused(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    for record, message in (
        (AuditRecord('mode', 0, {str(key): 'x' * 4_000 for key in range(40)}), 'at most'),
        (AuditRecord('gossip', 0), 'kind'),
        (AuditRecord('segment', 0), 'kind'),
    ):
        with pytest.raises(ValueError, match=message):
            log.append([event(1), record])
    log.append([AuditRecord('mode', 0, {'x': float('nan'), 'y': 'a' * 9_999, 'z': (Link(), 1)})])
    log.close()
    assert verify(segment_paths(tmp_path)).num_records == 3


def test_a_parameter_hash_does_not_depend_on_the_order() -> None:
    assert parameters_hash({'a': 1, 'b': [1.5, 'x']}) == parameters_hash({'b': [1.5, 'x'], 'a': 1})
    assert parameters_hash({'a': 1}) != parameters_hash({'a': 2})


@pytest.mark.parametrize(
    ('kwargs', 'field'),
    [
        ({'fsync': 'sometimes'}, 'fsync'),
        ({'interval_s': 0.0}, 'interval_s'),
        ({'max_file_bytes': 1}, 'max_file_bytes'),
    ],
)
def test_a_wrong_rule_names_its_field(kwargs: dict[str, object], field: str) -> None:
    make: Callable[..., object] = AuditRules
    with pytest.raises(ValueError, match=f'{field}: expected'):
        make(**kwargs)
