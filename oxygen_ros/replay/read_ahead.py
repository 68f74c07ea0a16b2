# SPDX-License-Identifier: Apache-2.0
"""Reads a recording ahead of its playing, so that no message waits for the disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Condition, Thread
from types import TracebackType

from .storage import BagError, BagMessage


class ReadAhead:
    """Iterates over messages that another thread reads, at most `max_bytes` ahead.

    Use it in a `with` statement: leaving it ends the thread. The iterator belongs to one thread;
    what the source raises is raised there, after the messages read before it.
    """

    def __init__(self, source: Iterator[BagMessage], max_bytes: int = 32 << 20) -> None:
        self._source = source
        self._max_bytes = max_bytes
        self._messages: deque[BagMessage] = deque()
        self._num_bytes = 0
        self._ended = False
        self._error: BagError | None = None
        self._changed = Condition()
        self._thread = Thread(target=self._read, name='read_ahead', daemon=True)

    def __enter__(self) -> ReadAhead:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def __iter__(self) -> Iterator[BagMessage]:
        while True:
            with self._changed:
                while not self._messages and not self._ended:
                    self._changed.wait()
                if not self._messages:
                    if self._error is not None:
                        raise self._error
                    return
                message = self._messages.popleft()
                self._num_bytes -= len(message.data)
                self._changed.notify_all()
            yield message

    def _read(self) -> None:
        try:
            for message in self._source:
                with self._changed:
                    # One message is taken whatever its size, else a large one would never fit.
                    while self._num_bytes >= self._max_bytes and not self._ended:
                        self._changed.wait()
                    if self._ended:
                        return
                    self._messages.append(message)
                    self._num_bytes += len(message.data)
                    self._changed.notify_all()
        except BagError as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
