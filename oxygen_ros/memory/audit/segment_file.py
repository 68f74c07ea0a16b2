# SPDX-License-Identifier: Apache-2.0
"""One file that only grows, in whole appends."""

from __future__ import annotations

from contextlib import suppress
import os
from pathlib import Path


class SegmentFile:
    """A new file, open for appending.

    :raises OSError: it exists already, or cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0  # bytes appended whole
        self._spoiled = False  # a part of a failed append may lie behind `size`
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o640)

    def append(self, data: bytes) -> None:
        """Append all of the data, or nothing.

        :raises OSError: nothing was appended.
        """
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(f'{self.path}: the file was removed')
        if self._spoiled:
            self._cut()
        try:
            done = 0
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError:
            # A part must not stay, or the next append would be glued to it.
            self._spoiled = True
            with suppress(OSError):
                self._cut()
            raise
        self.size += len(data)

    def _cut(self) -> None:
        os.ftruncate(self._file, self.size)
        self._spoiled = False

    def sync(self) -> None:
        """Wait until the disk has everything.

        :raises OSError: it may not have it.
        """
        os.fsync(self._file)

    def close(self) -> None:
        """End writing; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
