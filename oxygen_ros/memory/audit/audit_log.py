# SPDX-License-Identifier: Apache-2.0
"""Writing the audit log: append-only, chained, rotated, synced by a stated policy.

Each run begins a segment of its own and never writes to a file of an earlier run: what a crash
left there is evidence. The first record of a segment carries the chain over: it names the segment
that it goes on from and, where that file ends in bytes that are no record, how many these are and
their hash; `repair` moves them aside later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
import fcntl
import hashlib
import os
from pathlib import Path
import time
from typing import ClassVar

from ...setting import check, setting
from ..errors import AuditUnavailable
from .audit_chain import (
    AuditRecord,
    GENESIS,
    KINDS,
    Link,
    seal,
    SEGMENT_KIND,
    segment_number,
    segment_path,
    segment_paths,
    unseal,
)
from .audit_head import Head, write_head
from .segment_file import SegmentFile


@dataclass(frozen=True, slots=True)
class AuditRules:
    """When a file is full and when the disk must have it.

    `fsync` 'always': after each write; 'interval': every `interval_s` at most; 'never': the
    operating system decides, and a power cut may take what it had not written.

    :raises ValueError: names the field or parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'audit'

    fsync: str = setting(
        'interval',
        'When the log is synced to disk: after each write, each interval, or when the system '
        'chooses',
        choices=('always', 'interval', 'never'),
    )
    interval_s: float = setting(
        1.0, 'Interval between syncs', 's', low=0.01, high=3_600.0, name='audit.fsync_interval_s'
    )
    max_file_bytes: int = 64 << 20
    key: bytes | None = field(default=None, repr=False)  # HMAC instead of a plain hash

    def __post_init__(self) -> None:
        check(self)
        if self.max_file_bytes < 4_096:
            raise ValueError(f'max_file_bytes: expected at least 4096, got {self.max_file_bytes}')


class AuditLog:
    """Appends records. Used by one thread at a time.

    :param wall_ns: wall clock, for the time of writing.
    :param steady_s: steady clock, for the sync interval.
    :raises AuditUnavailable: the directory cannot be written now.
    """

    def __init__(
        self,
        directory: str | Path,
        rules: AuditRules | None = None,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directory = Path(directory)
        self.rules = rules or AuditRules()
        self._wall_ns = wall_ns
        self._steady_s = steady_s
        self._file: SegmentFile | None = None
        self._lock = -1
        self._dirty = False
        self._stamp_ns = 0  # of the newest record
        self._synced_s = steady_s()
        self.sync_fault = ''  # why the newest sync failed; empty: it did not
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock_directory()
            segments = segment_paths(self.directory)
            carried, self._link, torn = _end_of_chain(segments, self.rules.key)
            self._segment = segment_number(segments[-1]) or 0 if segments else 0
            self._begin_segment({'starts_run': True, 'after': carried, 'torn': torn})
        except OSError as error:
            self._abandon()
            raise AuditUnavailable(f'{self.directory}: {error}') from error
        self.sync()

    @property
    def head(self) -> Link:
        """The newest record; its hash, noted elsewhere, proves the log up to it."""
        return self._link

    def append(self, records: Sequence[AuditRecord]) -> None:
        """Append records in one write: all of them, or none.

        :raises AuditUnavailable: none was appended; the same records may be appended later.
        :raises ValueError: one cannot be written, whatever the disk.
        """
        for record in records:
            if record.kind not in KINDS[1:]:
                raise ValueError(f'kind: expected one of {KINDS[1:]}, got {record.kind!r:.80}')
        try:
            if self._open_file.size >= self.rules.max_file_bytes:
                self.sync()
                self._begin_segment({'starts_run': False, 'after': self._segment})
            self._write(self._open_file, [self._fields(record) for record in records])
        except OSError as error:
            raise AuditUnavailable(f'{self.directory}: {error}') from error
        self._stamp_ns = max([self._stamp_ns, *(record.stamp_ns for record in records)])
        if self.rules.fsync == 'always':
            self.sync()
        else:
            self.tick()

    def tick(self) -> None:
        """Sync when it is due; call it at least every `interval_s` while nothing is appended."""
        if self._dirty and self._steady_s() - self._synced_s >= self.rules.interval_s:
            self.sync()

    def sync(self) -> None:
        """Give everything to the disk, as far as the policy goes, and then move the head.

        What was appended is in the file whether this works or not, so a failure is no error of
        `append`: `sync_fault` tells it, and the next interval tries again.
        """
        wait = self.rules.fsync != 'never'
        self._synced_s = self._steady_s()
        try:
            if wait:
                self._open_file.sync()
            write_head(self.directory, Head(self._link, self._segment), self.rules.key, wait)
        except OSError as error:
            self.sync_fault = f'{self.directory}: sync failed: {error}'
            return
        self._dirty = False
        self.sync_fault = ''

    def close(self) -> None:
        """Append a last record that says the log was ended on purpose; may be called twice.

        :raises AuditUnavailable: the log ends without it.
        """
        if self._file is None:
            return
        try:
            self._write(self._file, [self._fields(AuditRecord('close', self._stamp_ns))])
        except OSError as error:
            raise AuditUnavailable(f'{self.directory}: {error}') from error
        finally:
            self.sync()
            self._abandon()

    def _fields(self, record: AuditRecord) -> dict[str, object]:
        return {
            'kind': record.kind,
            'stamp_ns': record.stamp_ns,
            'wall_ns': self._wall_ns(),
            'observation': record.observation,
            'prefix_hash': record.prefix_hash,
            'model_checksum': record.context.model_checksum,
            'parameters_hash': record.context.parameters_hash,
            'software': record.context.software,
            'body': record.body,
        }

    @property
    def _open_file(self) -> SegmentFile:
        if self._file is None:
            raise OSError('the log is closed')
        return self._file

    def _write(self, file: SegmentFile, records: Sequence[Mapping[str, object]]) -> None:
        link, lines = self._link, bytearray()
        for fields in records:
            line, link = seal(fields, link, self.rules.key)
            lines += line
        file.append(bytes(lines))
        self._link, self._dirty = link, True

    def _begin_segment(self, body: Mapping[str, object]) -> None:
        number = self._segment + 1
        while segment_path(self.directory, number).exists():
            number += 1  # a file left empty by a crash or a full disk
        file = SegmentFile(segment_path(self.directory, number))
        header = AuditRecord(SEGMENT_KIND, 0, {'segment': number, **body})
        try:
            self._write(file, [self._fields(header)])
        except OSError:
            file.close()
            with suppress(OSError):
                file.path.unlink()
            raise
        if self._file is not None:
            self._file.close()
        self._file, self._segment = file, number

    def _lock_directory(self) -> None:
        # Two writers would fork the chain. The lock goes with the process, however that ends.
        self._lock = os.open(self.directory / 'audit.lock', os.O_RDWR | os.O_CREAT, 0o640)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OSError('another process writes this log') from error

    def _abandon(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _end_of_chain(
    segments: Sequence[Path], key: bytes | None
) -> tuple[int, Link, dict[str, object] | None]:
    """Return the segment and place of the last good record, and what follows it in its file.

    :raises OSError: there are records, but none that this key fits.
    """
    num_bad = 0
    for path in reversed(segments):
        content = path.read_bytes()
        end = len(content)
        while end:
            end = content.rfind(b'\n', 0, end) + 1
            if not end:
                break
            start = content.rfind(b'\n', 0, end - 1) + 1
            try:
                fields = unseal(content[start:end], key)
            except ValueError:
                num_bad += 1
                end = start
                continue
            rest = content[end:]
            torn = {'bytes': len(rest), 'sha256': hashlib.sha256(rest).hexdigest()}
            return (
                segment_number(path) or 0,
                Link(fields['seq'], fields['hash']),
                torn if rest else None,
            )
    if num_bad:
        raise OSError(f'none of {num_bad} records fits the key: a new key needs a new directory')
    return 0, Link(0, GENESIS), None
