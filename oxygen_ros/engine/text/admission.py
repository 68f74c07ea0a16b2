# SPDX-License-Identifier: Apache-2.0
"""Which waiting text requests get a prefix, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...types import TaskType
from ..config import EngineConfig
from ..kv.context import Context
from ..kv.manager import KVCacheManager
from ..prefixes.prefix_work import PrefixWork
from ..scheduling.work import Rank
from .requests import RequestState, TextRequest

PrefixSource = Callable[[TaskType, Rank, Callable[[Context], None]], PrefixWork | None]
"""Starts a prefix of a request's own (isolated caches); None: no slot now."""


class Admission:
    """Pins prefixes for waiting requests.

    At most `max_admitted` requests hold a prefix, dialogue all but one of them, so that a
    scene-graph request never waits behind saturating dialogue. Only the thread that owns the
    engine calls it.

    :param own_prefix: with isolated caches a request waits for a prefix of its own; else None.
    """

    def __init__(
        self, manager: KVCacheManager, config: EngineConfig, own_prefix: PrefixSource | None
    ) -> None:
        self._manager = manager
        self._max_admitted = config.max_admitted
        self._own_prefix = own_prefix
        self._building: dict[int, PrefixWork] = {}

    @property
    def works(self) -> list[PrefixWork]:
        """Prefixes being built for one request each."""
        return list(self._building.values())

    def waiting(self, requests: Iterable[TextRequest]) -> list[TextRequest]:
        """Return the requests that want a prefix or blocks, the most urgent first."""
        waiting = [
            request
            for request in requests
            if request.state is RequestState.WAITING and request.request_id not in self._building
        ]
        return sorted(waiting, key=lambda request: (request.task, request.request_id))

    def bind(self, request: TextRequest, live: Iterable[TextRequest], now_ns: int) -> bool:
        """Pin a prefix for a request; False: it has to wait, maybe for one it has just begun."""
        if not self._may_enter(request, live):
            return False
        if self._own_prefix is not None:
            work = self._own_prefix(
                request.task, request.rank, lambda context: self._bind_own(request, context)
            )
            if work is not None:
                self._building[request.request_id] = work
            return False
        prefix = self._manager.choose_text_prefix(now_ns)
        if prefix is None:
            return False
        request.context = self._manager.bind_context(request.task, prefix, now_ns)
        return True

    def _may_enter(self, request: TextRequest, live: Iterable[TextRequest]) -> bool:
        admitted = [
            other.task
            for other in live
            if other.context is not None or other.request_id in self._building
        ]
        if len(admitted) >= self._max_admitted:
            return False
        if request.task is not TaskType.DIALOGUE or self._max_admitted == 1:
            return True
        return admitted.count(TaskType.DIALOGUE) < self._max_admitted - 1

    def _bind_own(self, request: TextRequest, context: Context) -> None:
        del self._building[request.request_id]
        request.context = context

    def abandon(self, request_id: int) -> None:
        """Give up a prefix that was being built for a request, if there is one."""
        work = self._building.pop(request_id, None)
        if work is not None:
            self._manager.abandon(work.builder)
