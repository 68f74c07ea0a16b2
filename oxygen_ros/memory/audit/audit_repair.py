# SPDX-License-Identifier: Apache-2.0
"""Moving the torn tail of an audit file aside, so that the rest verifies."""

from __future__ import annotations

from dataclasses import dataclass
import os
from pathlib import Path

from .audit_chain import unseal
from .audit_verify import lines_of, torn_bytes


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done."""

    path: Path
    num_bytes: int  # moved
    moved_to: Path | None  # None: there was nothing to repair


def repair(path: Path, key: bytes | None = None) -> Repair:
    """Move the bytes after the last whole record to a file beside it.

    Only what a write that did not end leaves is moved: bytes after the last end of line. The
    segment after this one, if there is one, names their number and hash in its first record.

    :raises ValueError: a whole record is bad, which no crash explains; nothing was changed.
    :raises OSError: a file cannot be read or written; nothing was lost.
    """
    good = number = 0
    with path.open('rb') as file:
        for line in lines_of(file):
            number += 1
            try:
                unseal(line, key)
            except ValueError as error:
                if not torn_bytes(line, file):
                    raise ValueError(
                        f'{path}:{number}: {error}; this is not a torn tail, nothing was changed'
                    ) from error
                break
            good = file.tell()
        size = os.fstat(file.fileno()).st_size
        file.seek(good)
        tail = file.read()
    if good == size and size:
        return Repair(path, 0, None)
    aside = path.with_name(f'{path.name}.torn-{good}')
    with aside.open('xb') as copy:
        copy.write(tail)
        copy.flush()
        os.fsync(copy.fileno())
    if good:
        with path.open('r+b') as file:
            file.truncate(good)
            os.fsync(file.fileno())
    else:
        path.unlink()  # not one whole record: the file is all tail
    return Repair(path, len(tail), aside)
