# SPDX-License-Identifier: Apache-2.0
"""The live text requests: who is told of their tokens and of their end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import itertools

from ..engine.engine import Engine
from ..engine.text.constraint import TokenConstraint
from ..types import FinishReason, SamplingParams, TaskType, TextDelta, TextResult
from .clock import RobotClock


@dataclass(slots=True)
class _Live:
    task: TaskType
    submitted_ns: int
    on_delta: Callable[[TextDelta], None] | None
    on_result: Callable[[TextResult], None]


class TextRequests:
    """Submits text requests and forwards their events; belongs to the owner's thread.

    Each request ends in exactly one call of its `on_result`, also where the engine is no longer
    there to end it (`fail_all`).

    :param post: has a command run by whoever drives the engine, in order.
    """

    def __init__(
        self, post: Callable[[Callable[[Engine], None]], None], clock: RobotClock
    ) -> None:
        self._post = post
        self._clock = clock
        self._ids = itertools.count(1)
        self._live: dict[int, _Live] = {}

    def count(self, task: TaskType) -> int:
        """Return the live requests of a task."""
        return sum(live.task is task for live in self._live.values())

    @property
    def num_live(self) -> int:
        """All live requests."""
        return len(self._live)

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
        request_id = next(self._ids)
        self._live[request_id] = _Live(task, self._clock.now_ns(), on_delta, on_result)
        self._post(
            lambda engine: engine.submit_text(request_id, task, prompt, sampling, constraint)
        )
        return request_id

    def cancel(
        self,
        request_id: int,
        reason: FinishReason = FinishReason.CANCELLED,
        message: str = '',
    ) -> None:
        """Ask the engine to end a request; its result says so, where it has not ended already."""

        def end(engine: Engine) -> None:
            engine.cancel_text(request_id, reason, message)

        self._post(end)

    def take(self, event: TextDelta | TextResult) -> None:
        """Forward an event of the engine."""
        if isinstance(event, TextDelta):
            live = self._live.get(event.request_id)
            if live is not None and live.on_delta is not None:
                live.on_delta(event)
            return
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
                    self._clock.now_ns(),
                    None,
                )
            )
