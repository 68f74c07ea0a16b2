"""From logits to text: samples tokens, streams them, and sees when a request is done."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from ..types import FinishReason, TextDelta, TextResult
from .model_runner import ModelRunner
from .requests import TextRequest
from .sampler import sample_tokens

TextEvent = TextDelta | TextResult


class TokenDelivery:
    """Takes each new token of each request; only the thread that owns the engine calls it.

    :param emit: takes deltas and results.
    :param end: ends a request.
    """

    def __init__(self, runner: ModelRunner, now_ns: Callable[[], int],
                 emit: Callable[[TextEvent], None],
                 end: Callable[[int, FinishReason], bool]) -> None:
        self._runner = runner
        self._now_ns = now_ns
        self._emit = emit
        self._end = end

    def take(self, requests: Sequence[TextRequest], logits: Tensor) -> None:
        """Sample one token for each request from its row: [num_requests, vocab_size] float32."""
        tokens = sample_tokens(
            logits, [request.sampling for request in requests],
            [len(request.tokens) for request in requests],
            [request.constraint for request in requests])
        now_ns = self._now_ns()
        for request, token in zip(requests, tokens):
            request.last_step_ns = now_ns
            self._take_one(request, token, now_ns)

    def _take_one(self, request: TextRequest, token: int, now_ns: int) -> None:
        self._runner.counters.text_tokens += 1
        if request.first_token_ns is None:
            request.first_token_ns = now_ns
        if request.constraint is not None:
            request.constraint.advance(token)
        if token in self._runner.spec.eos_token_ids:
            self._end(request.request_id, FinishReason.STOP)
            return
        request.tokens.append(token)
        text = request.stream.push(self._runner.model.detokenize([token]))
        self._emit(_delta(request, text, now_ns))
        complete = request.constraint is not None and request.constraint.is_complete
        if request.stream.stopped or complete:
            self._end(request.request_id, FinishReason.STOP)
        elif len(request.tokens) >= request.sampling.max_tokens:
            self._end(request.request_id, FinishReason.LENGTH)

    def finish(self, request: TextRequest, result: Callable[[int], TextResult]) -> None:
        """Give out what text was held back, then the result that `result(now_ns)` returns."""
        now_ns = self._now_ns()
        tail = request.stream.push(b'', final=True)
        if tail:
            self._emit(_delta(request, tail, now_ns))
        self._emit(result(now_ns))


def _delta(request: TextRequest, text: str, now_ns: int) -> TextDelta:
    return TextDelta(request_id=request.request_id, task=request.task, text=text,
                     num_tokens=len(request.tokens), steady_ns=now_ns)
