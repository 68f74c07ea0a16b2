# SPDX-License-Identifier: Apache-2.0
"""The action ~/dialogue: goals in, streamed text out, exactly one terminal state for each goal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from oxygen_ros.action import Dialogue

from ...robot.dialogue import Answer, Conversation, Listener, NOT_ACTIVE, Question
from ...robot.faults import FaultLog
from ...robot.messages import provenance_message
from ...robot.robot import Robot
from ...types import FinishReason
from ..messages import make_message
from ..robot_access import RobotAccess


class DialogueServer:
    """Serves goals and never blocks the executor: each goal is a coroutine that awaits its end.

    Everything here runs in the executor's thread. The server lives as long as its node, since the
    result of a goal is still on its way when the node is cleaned up; while the node is not active,
    a goal is taken and aborted, for a plain rejection could not say why.

    :param access: returns the way to the robot, or None while the node is not configured.
    :param result_timeout_s: how long results are kept.
    """

    def __init__(
        self,
        node: Node,
        access: Callable[[], RobotAccess | None],
        result_timeout_s: int,
        faults: FaultLog,
    ) -> None:
        self._access = access
        self._faults = faults
        self._live: list[_Goal] = []
        self._server = ActionServer(
            node,
            Dialogue,
            '~/dialogue',
            self._execute,
            callback_group=ReentrantCallbackGroup(),
            cancel_callback=self._cancel,
            result_timeout=result_timeout_s,
        )

    def destroy(self) -> None:
        """Destroy the action; only when nothing spins the node any more."""
        self._server.destroy()

    async def _execute(self, handle: ServerGoalHandle[Any, Any, Any]) -> Dialogue.Result:
        access = self._access()
        if access is None:
            handle.abort()
            reason = FinishReason.REFUSED.value
            return Dialogue.Result(finish_reason=reason, message=NOT_ACTIVE)
        goal = _Goal(handle, access)
        self._live.append(goal)
        try:
            goal.ask()
            answer = await goal.done
            assert answer is not None
            return _finish(handle, answer)
        except Exception as error:  # noqa: B902, BLE001 the server aborts what is open
            self._faults.note('dialogue', error)
            reason = FinishReason.ERROR.value
            return Dialogue.Result(finish_reason=reason, message=str(error))
        finally:
            self._live.remove(goal)

    def _cancel(self, handle: ServerGoalHandle[Any, Any, Any]) -> CancelResponse:
        """Accept every cancel; the goal ends with what was decoded so far."""
        try:
            for goal in self._live:
                if goal.handle == handle:
                    goal.cancel()
        except Exception as error:  # noqa: B902, BLE001 a cancel is accepted all the same
            self._faults.note('dialogue cancel', error)
        return CancelResponse.ACCEPT


class _Goal:
    """One goal between its client and the robot, which may be in another thread."""

    def __init__(self, handle: ServerGoalHandle[Any, Any, Any], access: RobotAccess) -> None:
        self.handle = handle
        self.done: Future[Answer] = Future()
        self._access = access
        self._talk: Conversation | None = None  # of the robot's thread

    def ask(self) -> None:
        request = self.handle.request
        question = Question(request.prompt, request.max_tokens, request.temperature)
        deliver = self._access.deliver
        listener = Listener(
            on_answer=lambda answer: deliver(lambda: self.done.set_result(answer)),
            on_text=lambda text, num_tokens: deliver(lambda: self._feed_back(text, num_tokens)),
        )
        is_cancelled = self.handle.is_cancel_requested  # between acceptance and execution

        def ask(robot: Robot) -> None:
            self._talk = robot.dialogue.ask(question, listener, is_cancelled=is_cancelled)

        self._access.submit(ask)

    def cancel(self) -> None:
        def cancel(robot: Robot) -> None:
            if self._talk is not None:
                robot.dialogue.cancel(self._talk)

        self._access.submit(cancel)

    def _feed_back(self, text: str, num_tokens: int) -> None:
        if not self.done.done():
            self.handle.publish_feedback(Dialogue.Feedback(text=text, num_tokens=num_tokens))


def _finish(handle: ServerGoalHandle[Any, Any, Any], answer: Answer) -> Dialogue.Result:
    result = answer.result
    reason = result.finish_reason
    if reason in (FinishReason.STOP, FinishReason.LENGTH):
        handle.succeed()
    elif reason is FinishReason.CANCELLED and handle.is_cancel_requested:
        handle.canceled()
    else:
        handle.abort()
    return Dialogue.Result(
        text=result.text,
        finish_reason=reason.value,
        message=result.message,
        num_tokens=len(result.tokens),
        time_to_first_token_s=answer.ttft_s,
        provenance=provenance_message(make_message, result.provenance),
        citations=[entry.citation for entry in answer.recollection.entries],
        verdict=answer.verdict,
        reasons=list(answer.reasons),
    )
