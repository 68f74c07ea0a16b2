# SPDX-License-Identifier: Apache-2.0
"""Reading the store: ~/query_memory, and what goes into the prompt of a dialogue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

import oxygen_ros.srv as srv

from ...memory.episodes.reader import MemoryReader
from ...memory.episodes.recall import recall, Recollection
from ...memory.errors import StoreUnavailable
from ...types import SamplingParams
from ..faults import FaultLog
from ..middleware.wake_up import WakeUp
from .query_conversions import entry_msg, query_of
from .run_memory import RunMemory

Answer = TypeVar('Answer')

_MAX_PENDING = 16  # a service that is called again and again must not fill the memory
_QUERY_LIMIT_S = 1.0
_NO_STORE = 'expected a configured node with memory.store_file, got none'


class _Jobs:
    """A reader and its thread, which no other thread may use."""

    def __init__(self, store_file: str, deliver: Callable[[Callable[[], None]], None]) -> None:
        self._store_file = store_file
        self._deliver = deliver
        self._reader: MemoryReader | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix='memory_reader')
        self._is_ending = False
        self.num_pending = 0  # the executor's thread counts up and, at delivery, down

    def ask(self, work: Callable[[MemoryReader], Answer]) -> Future[Answer]:
        """Have work done on the reader's thread."""
        future: Future[Answer] = Future()
        self.num_pending += 1
        self._pool.submit(self._run, work, future)
        return future

    def _run(self, work: Callable[[MemoryReader], Answer], future: Future[Answer]) -> None:
        try:
            if self._is_ending:
                raise RuntimeError(_NO_STORE)
            if self._reader is None:
                self._reader = MemoryReader(self._store_file, _QUERY_LIMIT_S)
            answer = work(self._reader)
        except Exception as error:  # noqa: B902, BLE001 whoever asked must get an answer
            failure = error
            self._close_reader()  # the file may have been replaced: the next one opens it again
            self._deliver(lambda: self._fail(future, failure))
        else:
            self._deliver(lambda: self._answer(future, answer))

    def _answer(self, future: Future[Answer], answer: Answer) -> None:
        self.num_pending -= 1
        future.set_result(answer)

    def _fail(self, future: Future[Answer], error: Exception) -> None:
        self.num_pending -= 1
        future.set_exception(error)

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def end(self) -> None:
        """Refuse what waits; return when the thread has ended, within a query's time limit."""
        self._is_ending = True
        self._pool.submit(self._close_reader)
        self._pool.shutdown(wait=True)


class MemoryQueries:
    """Answers from the store; the reading has a thread of its own, all else is the executor's.

    Made with the node, since a caller is owed an answer in every state.
    """

    def __init__(self, node: Node, faults: FaultLog) -> None:
        self._jobs: _Jobs | None = None
        self._recall_tokens = 0
        self._faults = faults
        self._answers: deque[Callable[[], None]] = deque()
        self._wake = WakeUp(node, faults.guard('memory answers', self._give_out))
        # Reentrant: a call waits for its answer, and must not keep the others from running.
        node.create_service(
            srv.QueryMemory,
            '~/query_memory',
            self._on_query,
            callback_group=ReentrantCallbackGroup(),
        )

    def configure(self, store_file: str, recall_tokens: int) -> None:
        """Answer from a store; empty: there is none."""
        self._jobs = _Jobs(store_file, self._deliver) if store_file else None
        self._recall_tokens = recall_tokens

    def cleanup(self) -> None:
        """Read no more."""
        jobs, self._jobs = self._jobs, None
        if jobs is not None:
            jobs.end()

    def _deliver(self, answer: Callable[[], None]) -> None:
        self._answers.append(answer)
        self._wake()

    def _give_out(self) -> None:
        while self._answers:
            self._answers.popleft()()

    async def recall(
        self, question: str, sampling: SamplingParams, memory: RunMemory
    ) -> Recollection:
        """Return what is remembered of a question, as far as its request leaves room for it.

        Nothing where there is no store, or trouble with it: an answer is owed all the same.
        """
        budget = min(self._recall_tokens, memory.text_room(question, sampling))
        if self._jobs is None or budget <= 0 or self._jobs.num_pending >= _MAX_PENDING:
            return Recollection('')
        now_ns = memory.now_ns()
        try:
            found = await self._jobs.ask(
                lambda reader: recall(reader, question, now_ns, budget, memory.count_tokens)
            )
        except StoreUnavailable:
            found = None  # not made yet, or trouble of the disk, of which the writer tells
        except Exception as error:  # noqa: B902, BLE001 counted and logged
            self._faults.note('recall', error)
            found = None
        return found or Recollection('')

    async def _on_query(self, request: Any, response: Any) -> Any:
        response.success = False
        try:
            query = query_of(request)
            if self._jobs is None:
                response.message = _NO_STORE
            elif self._jobs.num_pending >= _MAX_PENDING:
                response.message = f'expected at most {_MAX_PENDING} queries at once, got one more'
            else:
                page = await self._jobs.ask(lambda reader: reader.find(query))
                assert page is not None
                response.entries = [entry_msg(entry) for entry in page.entries]
                response.next_before = page.next_before or 0
                response.success = True
        except Exception as error:  # noqa: B902, BLE001 a wrong query or a store in trouble
            response.message = f'{type(error).__name__}: {error}'
        return response
