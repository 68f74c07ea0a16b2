# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves at the end of the log is named, and moved aside by command only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oxygen_ros.memory.audit.audit_chain import AuditRecord, segment_paths
from oxygen_ros.memory.audit.audit_log import AuditLog
from oxygen_ros.memory.audit.audit_repair import repair
from oxygen_ros.memory.audit.audit_verify import verify


def event(number: int) -> AuditRecord:
    """Return a record."""
    return AuditRecord('mode', number, {'mode': f'mode {number}'})


@pytest.mark.parametrize('tail', [b'', b'{"seq":4,"ki', b'x' * 70_000, b'\0' * 512])
def test_a_torn_tail_is_named_carried_over_and_repaired_by_command(
    tmp_path: Path, tail: bytes
) -> None:
    log = AuditLog(tmp_path)
    log.append([event(1), event(2)])
    log.sync()
    log._abandon()  # as a crash does: no closing record
    (torn,) = segment_paths(tmp_path)
    if tail:
        with torn.open('ab') as file:
            file.write(tail)
    else:
        torn = tmp_path / 'audit-000002.jsonl'
        torn.touch()
    log = AuditLog(tmp_path)
    log.append([event(3)])
    log.close()
    report = verify(segment_paths(tmp_path))
    assert [fault.is_torn_tail for fault in report.faults] == [True]
    assert report.num_records == 6
    assert f'torn tail of {len(tail)} bytes' in str(report.faults[0])
    assert report.faults[0].path == torn
    header = json.loads(segment_paths(tmp_path)[-1].read_bytes().splitlines()[0])
    assert (header['body']['torn'] or {'bytes': 0})['bytes'] == len(tail)
    done = repair(torn)
    assert done.num_bytes == len(tail)
    assert done.moved_to is not None
    assert done.moved_to.read_bytes() == tail
    assert verify(segment_paths(tmp_path)).is_ok
    if torn.exists():
        assert repair(torn).moved_to is None


def test_what_is_not_a_torn_tail_is_not_repaired(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.append([event(1), event(2)])
    log.close()
    (path,) = segment_paths(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for spoilt in (
        [*lines[:1], b'{}\n', *lines[1:]],
        [*lines[:-1], lines[-1].replace(b'c', b'd')],
    ):
        path.write_bytes(b''.join(spoilt))
        with pytest.raises(ValueError, match='not a torn tail'):
            repair(path)
        assert path.read_bytes() == b''.join(spoilt)
