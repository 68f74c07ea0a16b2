# SPDX-License-Identifier: Apache-2.0
"""The form of the audit log: one JSON object a line, each bound to the one before by a hash.

A line is `{"seq":…,…,"prev":"<hash of the line before>","hash":"<64 digits>"}`. The hash is
SHA-256, or HMAC-SHA-256 where the operator gave a key, over the exact bytes of the line up to
`,"hash":`. So a change of any byte breaks its own line or the link to it, and it needs no rule of
how JSON is written to check one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
import hashlib
import hmac
import json
import math
from pathlib import Path
import re
from typing import Any

from ..limits import bounded

GENESIS = '0' * 64
SEGMENT_KIND = 'segment'
KINDS = (
    SEGMENT_KIND,
    'chunk',
    'utterance',
    'scene',
    'instruction',
    'parameters',
    'mode',
    'fault',
    'gap',
    'close',
)
MAX_LINE_BYTES = 65_536
_SEAL = b',"hash":"'
_LINE_END = len(_SEAL) + 64 + len(b'"}')
_FILE_NAME = 'audit-{:06d}.jsonl'
_FILE_PATTERN = re.compile(r'audit-(\d{6,9})\.jsonl')


@dataclass(frozen=True, slots=True)
class AuditContext:
    """Which model, parameters and software were at work."""

    model_checksum: str = ''
    parameters_hash: str = ''
    software: str = ''


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One event, before it has a place in the chain."""

    kind: str
    stamp_ns: int  # ROS time
    body: Mapping[str, object] = field(default_factory=dict)
    observation: Mapping[str, object] | None = None  # id, stamps, by `audit_records.observed`
    prefix_hash: str = ''
    context: AuditContext = field(default_factory=AuditContext)


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain."""

    seq: int = 0  # of the newest record, from 1
    digest: str = GENESIS


def plain(value: object) -> object:
    """Return a value that JSON has a form for: text bounded, numbers finite or null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return bounded(value)
    if isinstance(value, Mapping):
        return {bounded(str(key), 128): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    return bounded(str(value))


def digest_of(payload: bytes, key: bytes | None) -> str:
    """Return the hash of a line's bytes before its own hash."""
    if key is None:
        return hashlib.sha256(payload).hexdigest()
    return hmac.new(key, payload, hashlib.sha256).hexdigest()


def seal(fields: Mapping[str, object], link: Link, key: bytes | None) -> tuple[bytes, Link]:
    """Return the line for a record that follows a place in the chain, and its own place.

    :raises ValueError: the record is longer than a line may be.
    """
    values = {
        'seq': link.seq + 1,
        **{name: plain(value) for name, value in fields.items()},
        'prev': link.digest,
    }
    payload = json.dumps(
        values, separators=(',', ':'), ensure_ascii=False, allow_nan=False
    ).encode('utf-8')[:-1]
    digest = digest_of(payload, key)
    line = payload + _SEAL + digest.encode() + b'"}\n'
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f'record: expected at most {MAX_LINE_BYTES} bytes, got {len(line)}')
    return line, Link(link.seq + 1, digest)


def unseal(line: bytes, key: bytes | None) -> dict[str, Any]:
    """Return the fields of a line, its end included, whose own hash is right.

    :raises ValueError: says what is wrong.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f'longer than {MAX_LINE_BYTES} bytes')
    if not line.endswith(b'"}\n') or line[-_LINE_END - 1 :][: len(_SEAL)] != _SEAL:
        raise ValueError('not a sealed record')
    payload, digest = line[: -_LINE_END - 1], line[-67:-3]
    if not hmac.compare_digest(digest_of(payload, key).encode(), digest):
        raise ValueError('its hash does not match its content')
    # What follows can only fail for a record that was sealed, but not by this package.
    try:
        fields = json.loads(payload + b'}')
    except ValueError as error:
        raise ValueError('not JSON') from error
    if not isinstance(fields, dict) or not isinstance(fields.get('seq'), int):
        raise ValueError('no sequence number')
    return {**fields, 'hash': digest.decode()}


def segment_path(directory: Path, segment: int) -> Path:
    """Return the file of a segment, from 1."""
    return directory / _FILE_NAME.format(segment)


def segment_number(path: Path) -> int | None:
    """Return the number in a segment's file name; None where it is not one of ours."""
    match = _FILE_PATTERN.fullmatch(path.name)
    return int(match[1]) if match else None


def segment_paths(directory: Path) -> list[Path]:
    """Return the segments of a directory, oldest first.

    :raises OSError: the directory cannot be read.
    """
    numbers = {path: segment_number(path) for path in directory.iterdir()}
    return sorted(
        (path for path, number in numbers.items() if number is not None),
        key=lambda path: numbers[path] or 0,
    )


def read_key(path: str | Path) -> bytes:
    """Read the key of a keyed log.

    :raises ValueError: the file cannot be read or holds fewer than 16 bytes.
    """
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise ValueError(f'key file {path}: {error}') from error
    if len(key) < 16:
        raise ValueError(f'key file {path}: expected at least 16 bytes, got {len(key)}')
    return key
