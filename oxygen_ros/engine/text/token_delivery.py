# SPDX-License-Identifier: Apache-2.0
"""From logits to text: samples tokens, streams them, and sees when a request is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from ...types import FinishReason, TextDelta, TextResult
from ..model_runner import ModelRunner
from .requests import TextRequest
from .sampler import sample_tokens

TextEvent = TextDelta | TextResult


class TokenDelivery:
    """Takes each new token of each request; only the thread that owns the engine calls it.

    :param emit: takes deltas and results.
    :param end: ends a request.
    :param jump_forward: take tokens that a grammar forces together with the one before them.
    """

    def __init__(
        self,
        runner: ModelRunner,
        now_ns: Callable[[], int],
        emit: Callable[[TextEvent], None],
        end: Callable[[int, FinishReason], bool],
        jump_forward: bool,
    ) -> None:
        self._runner = runner
        self._now_ns = now_ns
        self._emit = emit
        self._end = end
        self._jump_forward = jump_forward

    def take(self, requests: Sequence[TextRequest], logits: Tensor) -> None:
        """Sample one token for each request from its row: [num_requests, vocab_size] float32."""
        tokens = sample_tokens(
            logits,
            [request.sampling for request in requests],
            [len(request.tokens) for request in requests],
            [request.constraint for request in requests],
        )
        now_ns = self._now_ns()
        for request, token in zip(requests, tokens):
            request.last_step_ns = now_ns
            self._take_one(request, token, now_ns)

    def _take_one(self, request: TextRequest, token: int, now_ns: int) -> None:
        if request.first_token_ns is None:
            request.first_token_ns = now_ns
        text, reason, num_before = '', None, len(request.tokens)
        for new in self._with_forced(request, token):
            self._runner.counters.text_tokens += 1
            if new in self._runner.spec.eos_token_ids:
                reason = FinishReason.STOP
                break
            request.tokens.append(new)
            text += request.stream.push(self._runner.model.detokenize([new]))
            if request.stream.stopped:
                reason = FinishReason.STOP
                break
            if len(request.tokens) >= request.sampling.max_tokens:
                reason = FinishReason.LENGTH
                break
        if request.constraint is not None and request.constraint.is_complete:
            reason = FinishReason.STOP
        if len(request.tokens) > num_before:
            self._emit(_delta(request, text, now_ns))
        if reason is not None:
            self._end(request.request_id, reason)

    def _with_forced(self, request: TextRequest, token: int) -> list[int]:
        """Tell the grammar of a token; return it and what can only follow."""
        constraint = request.constraint
        if constraint is None:
            return [token]
        constraint.advance(token)
        forced = [] if not self._jump_forward or constraint.is_complete else constraint.forced()
        for new in forced:
            constraint.advance(new)
        self._runner.counters.forced_tokens += len(forced)
        return [token, *forced]

    def finish(self, request: TextRequest, result: Callable[[int], TextResult]) -> None:
        """Give out what text was held back, then the result that `result(now_ns)` returns."""
        now_ns = self._now_ns()
        tail = request.stream.push(b'', final=True)
        if tail:
            self._emit(_delta(request, tail, now_ns))
        self._emit(result(now_ns))


def _delta(request: TextRequest, text: str, now_ns: int) -> TextDelta:
    return TextDelta(
        request_id=request.request_id,
        task=request.task,
        text=text,
        num_tokens=len(request.tokens),
        steady_ns=now_ns,
    )
