# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to a record, the check fails and says where."""

from __future__ import annotations

from pathlib import Path
import shutil

from hypothesis import given, settings, strategies
import pytest

from oxygen_ros.memory.audit.audit_chain import (
    AuditContext,
    AuditRecord,
    Link,
    seal,
    segment_paths,
    unseal,
)
from oxygen_ros.memory.audit.audit_head import Head, write_head
from oxygen_ros.memory.audit.audit_log import AuditLog, AuditRules
from oxygen_ros.memory.audit.audit_verify import verify

KEY = b'a key of at least 16 bytes'


def write_log(directory: Path, key: bytes | None = None) -> list[Path]:
    """Write two runs of 12 records each over several segments; return the segments."""
    for run in range(2):
        log = AuditLog(
            directory,
            AuditRules(max_file_bytes=4_096, key=key),
            wall_ns=lambda: 1_700_000_000_000_000_000,
        )
        for number in range(12):
            log.append(
                [
                    AuditRecord(
                        'chunk',
                        number,
                        {'chunk_id': number, 'text': 'säge "x"\n' * 60},
                        {'id': number, 'stamp_ns': number},
                        'f00',
                        AuditContext('m', 'p', str(run)),
                    )
                ]
            )
        log.close()
    return segment_paths(directory)


@pytest.fixture(scope='module', params=[None, KEY], ids=['plain', 'keyed'])
def good(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, bytes | None]:
    """Return the folder of a log that verifies, and its key."""
    directory = tmp_path_factory.mktemp('log')
    assert len(write_log(directory, request.param)) > 4
    return directory, request.param


def all_lines(directory: Path) -> list[tuple[int, bytes]]:
    """Return every line with the index of its file."""
    return [
        (index, line)
        for index, path in enumerate(segment_paths(directory))
        for line in path.read_bytes().splitlines(keepends=True)
    ]


def spoilt(directory: Path, lines: list[tuple[int, bytes]]) -> Path:
    """Write lines to a copy of the folder."""
    copy = directory.with_name(directory.name + '-spoilt')
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    for index, path in enumerate(segment_paths(copy)):
        path.write_bytes(b''.join(line for file, line in lines if file == index))
    return copy


def assert_found(
    directory: Path, key: bytes | None, position: int, before: list[tuple[int, bytes]]
) -> None:
    """Check that the first fault is named at the first record that is not as it was."""
    report = verify(segment_paths(directory), key)
    assert not report.is_ok
    first = report.faults[0]
    good_before = min(position, len(before))
    assert report.num_records <= good_before
    if first.seq is not None:
        assert first.seq == good_before + 1
    if first.line:
        file, line = first.path, first.line
        assert file.exists()
        assert line >= 1
        later = sum(
            1 for index, _ in before[:good_before] if index == segment_paths(directory).index(file)
        )
        assert line == later + 1


def test_a_whole_log_verifies(good: tuple[Path, bytes | None]) -> None:
    directory, key = good
    report = verify(segment_paths(directory), key)
    assert report.faults == []
    assert report.ends_closed
    assert report.num_records == len(all_lines(directory)) == report.link.seq
    assert report.head is not None
    assert report.head.link == report.link


@settings(max_examples=100, deadline=None)
@given(data=strategies.data())
def test_any_change_of_any_record_is_found_at_its_place(
    good: tuple[Path, bytes | None], data: strategies.DataObject
) -> None:
    directory, key = good
    before = all_lines(directory)
    lines = list(before)
    position = data.draw(strategies.integers(0, len(lines) - 1))
    file, line = lines[position]
    how = data.draw(strategies.sampled_from(['flip', 'delete', 'swap', 'truncate', 'insert']))
    if how == 'flip':
        at = data.draw(strategies.integers(0, len(line) - 1))
        mask = data.draw(strategies.integers(1, 255))
        lines[position] = (file, line[:at] + bytes([line[at] ^ mask]) + line[at + 1 :])
    elif how == 'delete':
        del lines[position]
    elif how == 'swap':
        other = data.draw(strategies.integers(0, len(lines) - 1).filter(lambda n: n != position))
        lines[position] = (file, lines[other][1])
        lines[other] = (lines[other][0], line)
        position = min(position, other)
    elif how == 'truncate':
        at = data.draw(strategies.integers(0, len(line) - 1))
        lines = [*lines[:position], (file, line[:at])]
    else:
        forged = data.draw(
            strategies.sampled_from(
                [
                    line,
                    lines[-1][1],
                    b'\n',
                    b'{}\n',
                    seal({'kind': 'chunk', 'body': {}}, Link(position, '0' * 64), b'other key')[0],
                ]
            )
        )
        lines.insert(position, (file, forged))
        if forged == line:
            position += 1  # the copy is found behind the original
    assert_found(spoilt(directory, lines), key, position, before)


def test_a_removed_segment_is_found_first_middle_and_last(good: tuple[Path, bytes | None]) -> None:
    directory, key = good
    num = len(segment_paths(directory))
    for index in range(num):
        copy = spoilt(directory, all_lines(directory))
        segment_paths(copy)[index].unlink()
        report = verify(segment_paths(copy), key)
        assert not report.is_ok
        partial = verify(segment_paths(copy), key, partial=True)
        assert partial.is_ok == (index == 0)


def test_segments_under_each_others_names_are_found(good: tuple[Path, bytes | None]) -> None:
    directory, key = good
    copy = spoilt(directory, all_lines(directory))
    one, other = segment_paths(copy)[1:3]
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    report = verify(segment_paths(copy), key)
    assert report.faults[0].path == one
    assert report.faults[0].line == 1


def test_a_changed_or_missing_head_is_found(good: tuple[Path, bytes | None]) -> None:
    directory, key = good
    for content in (b'', b'{}', b'x', (directory / 'audit.head').read_bytes().replace(b'1', b'2')):
        copy = spoilt(directory, all_lines(directory))
        (copy / 'audit.head').write_bytes(content)
        report = verify(segment_paths(copy), key)
        assert [fault.path.name for fault in report.faults] == ['audit.head']
        assert verify(segment_paths(copy), key, with_head=False).is_ok


def test_a_head_made_up_from_an_older_record_needs_the_key(tmp_path: Path) -> None:
    paths = write_log(tmp_path, KEY)
    old_head = (tmp_path / 'audit.head').read_bytes()
    lines = paths[-1].read_bytes().splitlines(keepends=True)
    paths[-1].write_bytes(b''.join(lines[:-1]))
    last = unseal(lines[-2], KEY)
    write_head(tmp_path, Head(Link(last['seq'], last['hash']), 9), None, False)
    assert (tmp_path / 'audit.head').read_bytes() != old_head
    assert not verify(paths, KEY).is_ok


def test_a_log_rewritten_with_another_key_is_found(tmp_path: Path) -> None:
    paths = write_log(tmp_path, b'the key of a forger!')
    assert verify(paths, b'the key of a forger!').is_ok
    report = verify(paths, KEY)
    assert (report.faults[0].path, report.faults[0].line) == (paths[0], 1)


def test_a_record_noted_elsewhere_must_be_there(tmp_path: Path) -> None:
    paths = write_log(tmp_path)
    whole = verify(paths)
    assert verify(paths, expected=whole.link).is_ok
    missing = verify(paths, expected=Link(whole.link.seq + 3, 'ab' * 32))
    assert 'missing at the end' in str(missing.faults[0])
    other = verify(paths, expected=Link(3, 'ab' * 32))
    assert other.faults[0].seq == 3


def test_a_line_without_end_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / 'audit-000001.jsonl'
    path.write_bytes(b'x' * (1 << 20) + b'\n')
    report = verify([path], with_head=False)
    assert 'longer than' in report.faults[0].reason
