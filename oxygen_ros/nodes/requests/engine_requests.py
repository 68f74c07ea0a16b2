# SPDX-License-Identifier: Apache-2.0
"""The node's live text requests: who is to hear of their tokens and of their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
import time

from ...engine.text.constraint import TokenConstraint
from ...runtime.runtime import Runtime
from ...types import FinishReason, SamplingParams, TaskType, TextDelta, TextResult


@dataclass(slots=True)
class _Live:
    task: TaskType
    submitted_ns: int
    on_delta: Callable[[TextDelta], None] | None
    on_result: Callable[[TextResult], None]


class EngineRequests:
    """Submits text requests and hands their events on; belongs to the executor's thread.

    Each request ends in exactly one call of its `on_result`, also where the engine is no longer
    there to end it (`fail_all`).
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._live: dict[int, _Live] = {}

    def count(self, task: TaskType) -> int:
        """Return the live requests of a task."""
        return sum(live.task is task for live in self._live.values())

    def submit(
        self,
        task: TaskType,
        prompt: str,
        sampling: SamplingParams,
        on_result: Callable[[TextResult], None],
        on_delta: Callable[[TextDelta], None] | None = None,
        constraint: TokenConstraint | None = None,
    ) -> int:
        """Post a request to the engine; return its id."""
        request_id = self._runtime.submit_text(task, prompt, sampling, constraint)
        self._live[request_id] = _Live(task, time.monotonic_ns(), on_delta, on_result)
        return request_id

    def cancel(
        self, request_id: int, reason: FinishReason = FinishReason.CANCELLED, message: str = ''
    ) -> None:
        """Ask the engine to end a request; its result says so."""
        self._runtime.cancel_text(request_id, reason, message)

    def dispatch(self, events: Iterable[TextDelta | TextResult]) -> None:
        """Hand events on, in order."""
        for event in events:
            if isinstance(event, TextDelta):
                live = self._live.get(event.request_id)
                if live is not None and live.on_delta is not None:
                    live.on_delta(event)
                continue
            ended = self._live.pop(event.request_id, None)
            if ended is not None:
                ended.on_result(event)

    def fail_all(self, message: str) -> None:
        """End every live request in the engine's place: it has stopped."""
        for request_id in list(self._live):
            live = self._live.pop(request_id)
            live.on_result(
                TextResult(
                    request_id,
                    live.task,
                    '',
                    (),
                    FinishReason.ERROR,
                    message,
                    live.submitted_ns,
                    None,
                    time.monotonic_ns(),
                    None,
                )
            )
