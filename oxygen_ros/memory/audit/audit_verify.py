# SPDX-License-Identifier: Apache-2.0
"""Checking an audit log: is it whole and unchanged, and if not, where does it go wrong first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from .audit_chain import Link, MAX_LINE_BYTES, SEGMENT_KIND, segment_number, unseal
from .audit_head import Head, HEAD_NAME, read_head


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and where."""

    path: Path
    line: int  # from 1; 0: the file as a whole
    seq: int | None  # of the record that was expected there
    reason: str
    is_torn_tail: bool = False  # what a crash leaves; `repair` moves it aside

    def __str__(self) -> str:
        place = f'{self.path}:{self.line}' if self.line else str(self.path)
        return f'{place}: {"" if self.seq is None else f"record {self.seq}: "}{self.reason}'


@dataclass(slots=True)
class AuditReport:
    """What a check found."""

    num_records: int = 0
    num_files: int = 0
    link: Link = field(default_factory=Link)  # of the last good record
    head: Head | None = None
    ends_closed: bool = False  # False: still being written, or ended by a crash
    faults: list[Fault] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        """Whether nothing at all is wrong."""
        return not self.faults


@dataclass(slots=True)
class _State:
    link: Link | None  # None: before the first record of a log whose start is not given
    segment: object = 0  # with the newest record
    last_kind: str = ''


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines with their ends; one that is too long to be a record comes in parts."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line


def torn_bytes(line: bytes, file: BinaryIO) -> int:
    """Return how long a tail is that starts with a line; 0 where an end of line follows.

    A power cut may leave more than a record's length, all zeros; only its end tells what it is.
    """
    size = len(line)
    if line.endswith(b'\n'):
        return 0
    while part := file.read(MAX_LINE_BYTES):
        if b'\n' in part:
            return 0
        size += len(part)
    return size


def read_records(path: Path, key: bytes | None = None) -> Iterator[dict[str, Any]]:
    """Yield the good records of a file up to the first bad one.

    :raises OSError: the file cannot be read.
    """
    with path.open('rb') as file, suppress(ValueError):
        for line in lines_of(file):
            yield unseal(line, key)


def verify(
    paths: Sequence[Path],
    key: bytes | None = None,
    *,
    partial: bool = False,
    with_head: bool = True,
    expected: Link | None = None,
) -> AuditReport:
    """Check segments, oldest first, and the head that lies beside the last one.

    The check ends at the first fault of the chain, since nothing after it is bound to anything.
    Torn tails are noted and the check goes on behind them.

    :param partial: the segments before the first one given may be missing.
    :param with_head: check that nothing is missing at the end.
    :param expected: a record that was noted elsewhere and must be there as it was.
    :raises OSError: a file cannot be read.
    """
    report = AuditReport()
    state = _State(None if partial else Link())
    head_fault = _read_head(paths, key, report) if with_head and paths else None
    wanted = {link for link in (expected, report.head and report.head.link) if link}
    for path in paths:
        report.num_files += 1
        for line_number, fields in _good_lines(path, key, state, report):
            fault = _check(fields, path, line_number, state)
            if fault is not None:
                report.faults.append(fault)
                break
            report.num_records += 1
            state.link, state.last_kind = Link(fields['seq'], fields['hash']), fields['kind']
            wanted.discard(state.link)
        if report.faults and not report.faults[-1].is_torn_tail:
            break
    else:
        report.link = state.link or Link()
        report.ends_closed = state.last_kind == 'close'
        report.faults += [
            _missing(paths[-1], link, report.link)
            for link in sorted(wanted, key=lambda link: link.seq)
        ]
    if head_fault is not None:
        report.faults.append(head_fault)
    return report


def _read_head(paths: Sequence[Path], key: bytes | None, report: AuditReport) -> Fault | None:
    path = paths[-1].parent / HEAD_NAME
    try:
        report.head = read_head(path, key)
    except ValueError as error:
        return Fault(path, 0, None, str(error))
    return None


def _missing(path: Path, wanted: Link, last: Link) -> Fault:
    if wanted.seq > last.seq:
        return Fault(
            path,
            0,
            last.seq + 1,
            f'missing at the end: record {wanted.seq} with hash {wanted.digest} was noted',
        )
    return Fault(path, 0, wanted.seq, f'not the one that was noted, with hash {wanted.digest}')


def _good_lines(
    path: Path, key: bytes | None, state: _State, report: AuditReport
) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    with path.open('rb') as file:
        for line in lines_of(file):
            number += 1
            seq = None if state.link is None else state.link.seq + 1
            if torn := torn_bytes(line, file):
                report.faults.append(
                    Fault(
                        path,
                        number,
                        seq,
                        f'torn tail of {torn} bytes: a write did not end; '
                        '`oxygen audit repair` moves it aside',
                        is_torn_tail=True,
                    )
                )
                return
            try:
                fields = unseal(line, key)
            except ValueError as error:
                report.faults.append(Fault(path, number, seq, str(error)))
                return
            yield number, fields
    if not number:
        report.faults.append(
            Fault(
                path,
                0,
                None,
                'torn tail of 0 bytes: empty; `oxygen audit repair` moves it aside',
                is_torn_tail=True,
            )
        )


def _check(fields: dict[str, Any], path: Path, line: int, state: _State) -> Fault | None:
    kind, body = fields.get('kind'), fields.get('body')
    is_first = line == 1
    if state.link is None:
        state.link = Link(fields['seq'] - 1, str(fields.get('prev')))
        state.segment = body.get('after') if isinstance(body, dict) else None
    seq = state.link.seq + 1
    if fields['seq'] != seq:
        return Fault(path, line, seq, f'expected this record, got record {fields["seq"]}')
    if fields.get('prev') != state.link.digest:
        return Fault(path, line, seq, 'not bound to the record before it')
    if is_first != (kind == SEGMENT_KIND):
        return Fault(
            path, line, seq, f'expected a segment header first, and only there, got {kind!r:.40}'
        )
    if is_first and isinstance(body, dict):
        number, after = body.get('segment'), body.get('after')
        if segment_number(path) not in (None, number):
            return Fault(path, line, seq, f'the file holds segment {number}')
        if after != state.segment:
            return Fault(path, line, seq, f'goes on from segment {after}, got {state.segment}')
        state.segment = number
    return None
