# SPDX-License-Identifier: Apache-2.0
"""The live text requests: their works, their memory, and the one end of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from ...types import FinishReason, FloatArray, Provenance, TaskType, TextResult
from ..config import EngineConfig
from ..kv.manager import KVCacheManager
from ..model_runner import ModelRunner
from ..prefixes.prompt_work import PromptWork
from ..scheduling.work import Rank, UnitKind, Work
from .admission import Admission, PrefixSource
from .decode_work import BatchedDecode
from .dense_read import DenseRead
from .requests import RequestState, TextRequest
from .token_delivery import TextEvent, TokenDelivery


class TextQueue:
    """All text requests between submission and their one TextResult.

    A request pins its prefix from admission to its end (`Admission`). Blocks are taken as it
    grows; when none is free, the request of the lowest priority (largest task, then newest) gives
    back its own blocks, keeps its prefix and its text, and waits until all its tokens fit again. A
    request that can never fit, or one too many, is refused at submission.

    :param before_release: called when memory is at its fullest: just before a request ends.
    """

    def __init__(
        self,
        runner: ModelRunner,
        manager: KVCacheManager,
        config: EngineConfig,
        now_ns: Callable[[], int],
        emit: Callable[[TextEvent], None],
        own_prefix: PrefixSource | None,
        before_release: Callable[[], None] = lambda: None,
    ) -> None:
        self._runner = runner
        self._manager = manager
        self._config = config
        self._before_release = before_release
        self._requests: dict[int, TextRequest] = {}
        self._reads: dict[int, DenseRead] = {}
        self._prompts: dict[int, PromptWork] = {}
        self._admission = Admission(manager, config, own_prefix)
        self._delivery = TokenDelivery(runner, now_ns, emit, self.end, config.jump_forward)
        self._decode = BatchedDecode(
            runner, self._decodable, self._begin_step, self._deliver, self._decode_arrived_ns
        )
        self._patience_ns = {
            Rank.DIALOGUE: round(config.scheduler.dialogue_patience_s * 1e9),
            Rank.SCENE_GRAPH: round(config.scheduler.scene_graph_patience_s * 1e9),
        }

    @property
    def num_live(self) -> int:
        """Requests that have not ended."""
        return len(self._requests)

    def live(self) -> tuple[TextRequest, ...]:
        """Return the requests that have not ended, oldest first."""
        return tuple(self._requests.values())

    def submit(self, request: TextRequest) -> None:
        """Take a request, or refuse it with the reason; either way it ends in one TextResult."""
        if request.request_id in self._requests:
            raise ValueError(
                f'request_id: expected a new one, got {request.request_id}, which is live'
            )
        self._requests[request.request_id] = request
        self._runner.counters.requests_started += 1
        problem = self._refusal(request)
        if problem:
            self._runner.counters.requests_refused += 1
            self.end(request.request_id, FinishReason.REFUSED, problem)

    def _refusal(self, request: TextRequest) -> str:
        most = self._config.max_text_requests
        if len(self._requests) > most:
            return f'text requests: expected at most {most} live ones, got one more'
        limit = self._config.max_text_tokens
        if request.max_tokens > limit:
            return (
                f'tokens: expected at most {limit} (prompt and answer together), '
                f'got {len(request.prompt_tokens)} + {request.sampling.max_tokens}'
            )
        return self._manager.refusal(request.max_tokens)

    def pause(self, request_id: int, paused: bool) -> None:
        """Let a live request rest after its token at hand, or go on."""
        request = self._requests.get(request_id)
        if request is not None:
            request.paused = paused

    def works(self, now_ns: int) -> list[Work]:
        """Return what can run now: prefixes and prompts in order, then the decode step."""
        for request in self._admission.waiting(self._requests.values()):
            if request.context is None and not self._admission.bind(
                request, self._requests.values(), now_ns
            ):
                continue
            if self._wants_read(request):
                self._start_read(request)
                continue
            tokens = request.prefill_tokens
            if self._make_room(request, len(tokens), min_task=request.task + 1):
                self._start_prompt(request, tokens)
        return [
            *self._admission.works,
            *self._reads.values(),
            *self._prompts.values(),
            self._decode,
        ]

    def _wants_read(self, request: TextRequest) -> bool:
        return (
            request.task is TaskType.SCENE_GRAPH
            and request.place is None
            and self._config.place_queries > 0
        )

    def _start_read(self, request: TextRequest) -> None:
        assert request.context is not None
        request.state = RequestState.READ

        def complete(place: FloatArray) -> None:
            del self._reads[request.request_id]
            request.place = place
            request.state = RequestState.WAITING  # for blocks

        self._reads[request.request_id] = DenseRead(
            self._runner,
            request.rank,
            request.context,
            self._config.place_queries,
            request.submitted_ns,
            complete,
        )

    def _start_prompt(self, request: TextRequest, tokens: tuple[int, ...]) -> None:
        assert request.context is not None
        recomputed = min(request.num_prefilled, len(tokens))
        self._runner.counters.tokens_recomputed += recomputed
        request.num_prefilled = len(tokens)
        request.state = RequestState.PREFILL

        def complete(logits: Tensor | None) -> None:
            assert request.context is not None and logits is not None
            del self._prompts[request.request_id]
            request.context.advance(len(tokens))
            request.state = RequestState.DECODE
            self._take_tokens([request], logits)

        self._prompts[request.request_id] = PromptWork(
            self._runner,
            UnitKind.TEXT_PREFILL,
            request.rank,
            request.context,
            tokens,
            request.submitted_ns,
            complete,
            with_head=True,
        )

    # Decode.

    def _decodable(self) -> Sequence[TextRequest]:
        """The requests of the next step: longest since their last one first, less the patience."""
        ready = [
            request
            for request in self._requests.values()
            if request.state is RequestState.DECODE and not request.paused
        ]
        if self._config.run_to_completion:
            ready.sort(key=lambda request: (request.submitted_ns, request.request_id))
        else:
            ready.sort(key=lambda request: request.last_step_ns + self._patience_ns[request.rank])
        return ready[: self._config.decode_batch]

    def _decode_arrived_ns(self) -> int:
        """Place of the step in order of arrival.

        One at a time: that of the oldest request. As a batch: after the prompts of all that are
        here, so that they decode together.
        """
        submitted = [request.submitted_ns for request in self._requests.values()]
        choose = max if self._config.decode_batch > 1 else min
        return choose(submitted, default=0)

    def _begin_step(self) -> Sequence[TextRequest]:
        requests = []
        for request in self._decodable():
            # An earlier one of this loop may have taken this one's blocks.
            if request.state is not RequestState.DECODE:
                continue
            if self._make_room(request, request.num_pending, min_task=request.task):
                requests.append(request)
            else:
                self._give_back(request)
        return [request for request in requests if request.state is RequestState.DECODE]

    def _deliver(self, requests: Sequence[TextRequest], logits: Tensor) -> None:
        for request in requests:
            assert request.context is not None
            request.context.advance(request.num_pending)
        self._take_tokens(requests, logits)

    def _take_tokens(self, requests: Sequence[TextRequest], logits: Tensor) -> None:
        self._delivery.take(requests, logits)

    # Memory.

    def _make_room(self, request: TextRequest, num_tokens: int, min_task: int) -> bool:
        """Take blocks for more tokens, from requests of lower priority if need be.

        :param min_task: only requests of this task or a lower priority may lose their blocks.
        """
        assert request.context is not None
        while not request.context.extend(num_tokens):
            own = (request.task, request.request_id)
            victims = [
                other
                for other in self._requests.values()
                if other.context is not None
                and other.context.num_blocks
                and other.task >= min_task
                and (other.task, other.request_id) > own
            ]
            if not victims:
                return False
            self._give_back(max(victims, key=lambda other: (other.task, other.request_id)))
        return True

    def _give_back(self, request: TextRequest) -> None:
        """Take a request's blocks; it keeps its prefix and its text, and waits."""
        assert request.context is not None
        self._decode.remove(request)
        self._prompts.pop(request.request_id, None)
        request.context.reset()
        request.state = RequestState.WAITING
        self._runner.counters.preemptions += 1

    # The end.

    def end(self, request_id: int, reason: FinishReason, message: str = '') -> bool:
        """End a request at any point of its life; False: it has ended before, or never was."""
        request = self._requests.pop(request_id, None)
        if request is None:
            return False
        self._decode.remove(request)
        self._reads.pop(request_id, None)
        self._prompts.pop(request_id, None)
        self._admission.abandon(request_id)
        provenance = self._release(request)
        request.state = RequestState.FINISHED
        self._runner.counters.requests_ended += 1
        self._delivery.finish(
            request,
            lambda now_ns: TextResult(
                request_id=request_id,
                task=request.task,
                text=request.stream.text,
                tokens=tuple(request.tokens),
                finish_reason=reason,
                message=message,
                submitted_ns=request.submitted_ns,
                first_token_ns=request.first_token_ns,
                ended_ns=now_ns,
                provenance=provenance,
                place=request.place,
            ),
        )
        return True

    def _release(self, request: TextRequest) -> Provenance | None:
        """Give back what a request holds; return where its text comes from."""
        if request.context is None:
            return None
        self._before_release()
        provenance = request.context.prefix.provenance
        if request.tokens:
            keys = zip(provenance.cameras, provenance.camera_stamps_ns)
            self._runner.ledger.read(tuple(keys))
        request.context.release()
        request.context = None
        return provenance

    def end_all(self, reason: FinishReason, message: str = '') -> None:
        """End every live request."""
        for request_id in list(self._requests):
            self.end(request_id, reason, message)
