# SPDX-License-Identifier: Apache-2.0
"""The action ~/dialogue: goals in, streamed text out, exactly one terminal state for each goal."""

from __future__ import annotations

from collections import deque
import math
import time
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import String

from oxygen_ros.action import Dialogue

from ...robot.settings import DialogueSettings
from ...types import FinishReason, SamplingParams, TaskType, TextDelta, TextResult
from ..conversions import provenance_msg
from ..faults import FaultLog
from ..middleware.endpoints import make_publisher
from ..records.memory_queries import MemoryQueries
from ..records.run_memory import RunMemory
from .dialogue_goal import DialogueCounts, Goal
from .engine_requests import EngineRequests

_NOT_ACTIVE = 'expected an active node, got one that is not'


class DialogueServer:
    """Serves goals and never blocks the executor: each goal is a coroutine that awaits its end.

    Everything here runs in the executor's thread. The server lives as long as its node, since the
    result of a goal is still on its way when the node is cleaned up; while the node is not active,
    a goal is taken and aborted, for a plain rejection could not say why.

    :param result_timeout_s: how long results are kept.
    :param queries: where what is remembered of a question is looked for.
    """

    def __init__(
        self, node: Node, result_timeout_s: int, faults: FaultLog, queries: MemoryQueries
    ) -> None:
        self.counts = DialogueCounts()
        self._queries = queries
        self._faults = faults
        self._requests: EngineRequests | None = None
        self._settings: DialogueSettings | None = None
        self.memory: RunMemory | None = None  # while configured
        self._running: list[Goal] = []
        self._waiting: deque[Goal] = deque()
        self._utterances = make_publisher(node, String, '~/utterance', 10)
        self._server = ActionServer(
            node,
            Dialogue,
            '~/dialogue',
            self._execute,
            callback_group=ReentrantCallbackGroup(),
            cancel_callback=self._cancel,
            result_timeout=result_timeout_s,
        )

    @property
    def num_running(self) -> int:
        """Goals that the engine is answering."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Goals that wait for their turn."""
        return len(self._waiting)

    def start(self, requests: EngineRequests, settings: DialogueSettings) -> None:
        """Take goals from now on."""
        self._requests, self._settings = requests, settings

    def reconfigure(self, settings: DialogueSettings) -> None:
        """Use other settings from the next goal on."""
        self._settings = settings

    def stop(self) -> None:
        """Take no more goals; end those that wait. The engine ends those that run."""
        self._requests = None
        while self._waiting:
            self._end(self._waiting.popleft(), FinishReason.ERROR, 'the node was deactivated')

    def destroy(self) -> None:
        """Take the action back; only when nothing spins the node any more."""
        self._server.destroy()

    # A goal's life.

    async def _execute(self, handle: ServerGoalHandle[Any, Any, Any]) -> Dialogue.Result:
        goal = Goal(handle, Future(), time.monotonic_ns())
        self.counts.accepted += 1
        try:
            await self._remember(goal)
            self._begin(goal)
        except Exception as error:  # noqa: B902, BLE001 the goal's end must be told, whatever it is
            self._faults.note('dialogue', error)
            self._forget(goal)
            self._end(goal, FinishReason.ERROR, f'{type(error).__name__}: {error}')
        result = await goal.done
        assert result is not None
        try:
            return self._finish(goal, result)
        except Exception as error:  # noqa: B902, BLE001 likewise; the server aborts what is open
            self._faults.note('dialogue', error)
            return Dialogue.Result(finish_reason=FinishReason.ERROR.value, message=str(error))

    async def _remember(self, goal: Goal) -> None:
        """Look for what is remembered of the question; an answer is owed without it too."""
        settings, memory = self._settings, self.memory
        if (
            self._requests is None
            or settings is None
            or memory is None
            or self._read(goal, settings)
        ):
            return  # refused below
        assert goal.sampling is not None
        goal.recollection = await self._queries.recall(
            goal.handle.request.prompt, goal.sampling, memory
        )

    def _begin(self, goal: Goal) -> None:
        settings = self._settings
        if self._requests is None or settings is None:
            self._end(goal, FinishReason.REFUSED, _NOT_ACTIVE)
            return
        if goal.handle.is_cancel_requested:  # between acceptance and execution
            self._end(goal, FinishReason.CANCELLED, '')
            return
        problem = self._read(goal, settings)
        if not problem and len(self._running) >= settings.max_concurrent:
            problem = self._place(goal, settings)
            if not problem:
                return
        if problem:
            self._end(goal, FinishReason.REFUSED, problem)
        else:
            self._submit(goal, self._requests)

    def _read(self, goal: Goal, settings: DialogueSettings) -> str:
        """Check what was asked; return why it is refused, or nothing."""
        request = goal.handle.request
        size = len(request.prompt.encode())
        if not request.prompt.strip():
            return 'prompt: expected a text, got none'
        if size > settings.max_prompt_bytes:
            return f'prompt: expected at most {settings.max_prompt_bytes} bytes, got {size}'
        try:
            goal.sampling = SamplingParams(
                max_tokens=request.max_tokens or settings.max_tokens,
                temperature=request.temperature,
                seed=self.counts.accepted,
            )
        except ValueError as error:
            return str(error)
        return ''

    def _place(self, goal: Goal, settings: DialogueSettings) -> str:
        """Place a goal beyond `max_concurrent`; return why that is not possible, or nothing."""
        if settings.policy == 'refuse':
            return f'expected at most {settings.max_concurrent} goals at once, got one more'
        if settings.policy == 'supersede':
            assert self._requests is not None
            oldest = self._running[0]
            assert oldest.request_id is not None
            self._requests.cancel(oldest.request_id, FinishReason.SUPERSEDED, 'a newer goal came')
            self._running.remove(oldest)  # its result is on its way; its place is free now
            self._submit(goal, self._requests)
            return ''
        if len(self._waiting) >= settings.max_queued:
            return f'expected at most {settings.max_queued} waiting goals, got one more'
        self._waiting.append(goal)
        return ''

    def _submit(self, goal: Goal, requests: EngineRequests) -> None:
        assert goal.sampling is not None
        goal.request_id = requests.submit(
            TaskType.DIALOGUE,
            goal.recollection.text + goal.handle.request.prompt,
            goal.sampling,
            on_result=lambda result: self._on_result(goal, result),
            on_delta=lambda delta: self._on_delta(goal, delta),
        )
        self._running.append(goal)

    def _cancel(self, handle: ServerGoalHandle[Any, Any, Any]) -> CancelResponse:
        """Accept every cancel; the goal ends with what was decoded so far."""
        try:
            for goal in (*self._running, *self._waiting):
                if goal.handle == handle:
                    self._cancel_goal(goal)
        except Exception as error:  # noqa: B902, BLE001 a cancel is accepted all the same
            self._faults.note('dialogue cancel', error)
        return CancelResponse.ACCEPT

    def _cancel_goal(self, goal: Goal) -> None:
        if goal.request_id is None:
            self._waiting.remove(goal)
            self._end(goal, FinishReason.CANCELLED, '')
        elif self._requests is not None:
            self._requests.cancel(goal.request_id)

    def _on_delta(self, goal: Goal, delta: TextDelta) -> None:
        goal.text += delta.text
        goal.num_tokens = delta.num_tokens
        for sentence in goal.utterances.push(delta.text):
            self._utterances.publish(String(data=sentence))

    def _on_result(self, goal: Goal, result: TextResult) -> None:
        self._forget(goal)
        for sentence in goal.utterances.finish():
            self._utterances.publish(String(data=sentence))
        if self.memory is not None:
            goal.verdict, goal.reasons = self.memory.utterance(
                result, goal.handle.request.prompt, goal.recollection.cited
            )
        goal.done.set_result(result)
        settings = self._settings
        while (
            self._requests is not None
            and settings is not None
            and self._waiting
            and len(self._running) < settings.max_concurrent
        ):
            self._submit(self._waiting.popleft(), self._requests)

    def _forget(self, goal: Goal) -> None:
        if goal in self._running:
            self._running.remove(goal)

    def _end(self, goal: Goal, reason: FinishReason, message: str) -> None:
        """End a goal that the engine has never seen."""
        goal.done.set_result(
            TextResult(
                0,
                TaskType.DIALOGUE,
                '',
                (),
                reason,
                message,
                goal.accepted_ns,
                None,
                time.monotonic_ns(),
                None,
            )
        )

    def publish_feedback(self) -> None:
        """Tell each client the text so far where it has grown; called after events were taken."""
        for goal in self._running:
            if goal.num_tokens != goal.told_tokens:
                goal.told_tokens = goal.num_tokens
                goal.handle.publish_feedback(
                    Dialogue.Feedback(text=goal.text, num_tokens=goal.num_tokens)
                )

    def _finish(self, goal: Goal, result: TextResult) -> Dialogue.Result:
        reason = result.finish_reason
        first_ns = result.first_token_ns
        ttft_s = math.nan if first_ns is None else (first_ns - goal.accepted_ns) * 1e-9
        if reason in (FinishReason.STOP, FinishReason.LENGTH):
            self.counts.succeeded += 1
            self.counts.newest_ttft_s = ttft_s
            goal.handle.succeed()
        elif reason is FinishReason.CANCELLED and goal.handle.is_cancel_requested:
            self.counts.cancelled += 1
            goal.handle.canceled()
        else:
            self.counts.aborted += 1
            self.counts.refused += reason is FinishReason.REFUSED
            goal.handle.abort()
        return Dialogue.Result(
            text=result.text,
            finish_reason=reason.value,
            message=result.message,
            num_tokens=len(result.tokens),
            time_to_first_token_s=ttft_s,
            provenance=provenance_msg(result.provenance),
            citations=[entry.citation for entry in goal.recollection.entries],
            verdict=goal.verdict,
            reasons=list(goal.reasons),
        )
