# SPDX-License-Identifier: Apache-2.0
"""The head of an audit log: how far it had come at the last sync.

A chain alone cannot show that its end was cut off. The head names the newest synced record; with a
key it carries a code of its own, so that an older head cannot be made up from an older record.
"""

from __future__ import annotations

from dataclasses import dataclass
import hmac
import json
import os
from pathlib import Path

from .audit_chain import digest_of, Link

HEAD_NAME = 'audit.head'


@dataclass(frozen=True, slots=True)
class Head:
    """The newest synced record."""

    link: Link
    segment: int


def _code(head: Head, key: bytes | None) -> str:
    return digest_of(f'head {head.segment} {head.link.seq} {head.link.digest}'.encode(), key)


def write_head(directory: Path, head: Head, key: bytes | None, sync: bool) -> None:
    """Replace the head at once: a reader sees the old one or the new one.

    :param sync: wait until the disk has it.
    :raises OSError: the old head stays.
    """
    text = (
        json.dumps(
            {
                'segment': head.segment,
                'seq': head.link.seq,
                'hash': head.link.digest,
                'code': _code(head, key),
            }
        )
        + '\n'
    )
    new = directory / (HEAD_NAME + '.new')
    with new.open('wb', buffering=0) as file:
        if file.write(text.encode()) != len(text):
            raise OSError(f'{new}: written only in part')
        if sync:
            os.fsync(file.fileno())
    new.replace(directory / HEAD_NAME)


def read_head(path: Path, key: bytes | None) -> Head:
    """Read a head.

    :raises ValueError: it cannot be read or was changed.
    """
    try:
        fields = json.loads(path.read_bytes())
        head = Head(Link(int(fields['seq']), str(fields['hash'])), int(fields['segment']))
        code = str(fields['code'])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f'{path}: expected the head of an audit log, got: {error!r}') from error
    if not hmac.compare_digest(code.encode(), _code(head, key).encode()):
        raise ValueError(f'{path}: the head was changed, or the key is another one')
    return head
