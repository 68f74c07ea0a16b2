# SPDX-License-Identifier: Apache-2.0
"""Reading the store beside the robot: in a thread of its own, or at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ..memory.episodes.reader import MemoryReader
from ..robot.shell import CallSoon

Answer = TypeVar('Answer')

_MAX_PENDING = 16  # a service that is called again and again must not fill the memory
_QUERY_LIMIT_S = 1.0
NO_STORE = 'expected a configured node with memory.store_file, got none'


class _Reading:
    """A reader, opened at its first use and again after an error: the file may be another."""

    def __init__(self, store_file: str) -> None:
        self._store_file = store_file
        self._reader: MemoryReader | None = None

    def run(
        self,
        work: Callable[[MemoryReader], Answer],
        on_answer: Callable[[Answer], None],
        on_error: Callable[[Exception], None],
    ) -> Callable[[], None]:
        """Do work; return what is to be called with its outcome."""
        try:
            if self._reader is None:
                self._reader = MemoryReader(self._store_file, _QUERY_LIMIT_S)
            answer = work(self._reader)
        except Exception as error:  # noqa: B902, BLE001 whoever asked must get an answer
            failure = error
            self.close()
            return lambda: on_error(failure)
        return lambda: on_answer(answer)

    def close(self) -> None:
        """Close the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class ReaderThread:
    """Reads in a thread of its own; `ask` and `end` belong to the owner's thread.

    :param call_soon: has a call made in the owner's thread.
    """

    def __init__(self, store_file: str, call_soon: CallSoon) -> None:
        self._reading = _Reading(store_file)
        self._call_soon = call_soon
        self._pool = ThreadPoolExecutor(1, thread_name_prefix='memory_reader')
        self._is_ending = False
        self._num_pending = 0  # counted down when the outcome is told

    @property
    def is_busy(self) -> bool:
        """Whether as many jobs wait as may."""
        return self._num_pending >= _MAX_PENDING

    def ask(
        self,
        work: Callable[[MemoryReader], Answer],
        on_answer: Callable[[Answer], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """Have work done; one of the two is called in the owner's thread."""
        self._num_pending += 1
        self._pool.submit(self._run, work, on_answer, on_error)

    def _run(
        self,
        work: Callable[[MemoryReader], Answer],
        on_answer: Callable[[Answer], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        if self._is_ending:
            outcome: Callable[[], None] = lambda: on_error(RuntimeError(NO_STORE))  # noqa: E731
        else:
            outcome = self._reading.run(work, on_answer, on_error)
        self._call_soon(lambda: self._tell(outcome))

    def _tell(self, outcome: Callable[[], None]) -> None:
        self._num_pending -= 1
        outcome()

    def end(self) -> None:
        """Refuse what waits; return when the thread has ended, within a query's time limit."""
        self._is_ending = True
        self._pool.submit(self._reading.close)
        self._pool.shutdown(wait=True)


class DirectReader:
    """Reads at once, in the owner's thread: a replay repeats exactly."""

    is_busy = False

    def __init__(self, store_file: str, call_soon: CallSoon) -> None:
        del call_soon
        self._reading = _Reading(store_file)

    def ask(
        self,
        work: Callable[[MemoryReader], Answer],
        on_answer: Callable[[Answer], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """Do work and tell its outcome."""
        self._reading.run(work, on_answer, on_error)()

    def end(self) -> None:
        """Read no more."""
        self._reading.close()
