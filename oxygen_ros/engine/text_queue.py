"""The live text requests: admission to prefixes and blocks, exhaustion, cancel, and the one end of each."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from ..types import FinishReason, Provenance, TaskType, TextDelta, TextResult
from .config import EngineConfig
from .decode_work import BatchedDecode
from .context import Context
from .manager import KVCacheManager
from .model_runner import ModelRunner
from .prefix_work import PrefixWork
from .prompt_work import PromptWork
from .requests import RequestState, TextRequest
from .sampler import sample_tokens
from .work import Rank, UnitKind, Work

TextEvent = TextDelta | TextResult
PrefixSource = Callable[[TextRequest, Callable[[Context], None]], PrefixWork | None]
"""Starts a prefix of a request's own (isolated caches); None: no slot now."""


class TextQueue:
    """All text requests between submission and their one TextResult.

    Rules of memory: a request pins its prefix from admission to its end. Blocks are taken as it grows; when none is
    free, the request of the lowest priority (largest task, then newest) gives back its own blocks, keeps its prefix
    and its text, and waits until all its tokens fit again. A request that can never fit is refused at submission.

    Rules of admission: at most `max_admitted` requests hold a prefix, dialogue all but one of them, so that a
    scene-graph request never waits behind saturating dialogue; at most `max_text_requests` live, the rest is refused.
    """

    def __init__(self, runner: ModelRunner, manager: KVCacheManager, config: EngineConfig,
                 now_ns: Callable[[], int], emit: Callable[[TextEvent], None],
                 own_prefix: PrefixSource | None, before_release: Callable[[], None] = lambda: None) -> None:
        self._runner = runner
        self._manager = manager
        self._config = config
        self._now_ns = now_ns
        self._emit = emit
        self._own_prefix = own_prefix
        self._before_release = before_release  # memory is at its fullest just before a request ends
        self._requests: dict[int, TextRequest] = {}
        self._prompts: dict[int, PromptWork] = {}
        self._building: dict[int, PrefixWork] = {}
        self._decode = BatchedDecode(runner, self._decodable, self._begin_step, self._deliver,
                                    self._decode_arrived_ns)
        self._patience_ns = {Rank.DIALOGUE: round(config.scheduler.dialogue_patience_s * 1e9),
                             Rank.SCENE_GRAPH: round(config.scheduler.scene_graph_patience_s * 1e9)}

    @property
    def num_live(self) -> int:
        """Requests that have not ended."""
        return len(self._requests)

    def live(self) -> tuple[TextRequest, ...]:
        """Return the requests that have not ended, oldest first."""
        return tuple(self._requests.values())

    def submit(self, request: TextRequest) -> None:
        """Take a request, or refuse it with the reason; either way it ends in exactly one TextResult."""
        if request.request_id in self._requests:
            raise ValueError(f'request_id: expected a new one, got {request.request_id}, which is live')
        self._requests[request.request_id] = request
        self._runner.counters.requests_started += 1
        problem = self._refusal(request)
        if problem:
            self._runner.counters.requests_refused += 1
            self.end(request.request_id, FinishReason.REFUSED, problem)

    def _refusal(self, request: TextRequest) -> str:
        if len(self._requests) > self._config.max_text_requests:
            return f'text requests: expected at most {self._config.max_text_requests} live ones, got one more'
        limit = self._config.max_text_tokens
        if request.max_tokens > limit:
            return (f'tokens: expected at most {limit} (prompt and answer together), '
                    f'got {len(request.prompt_tokens)} + {request.sampling.max_tokens}')
        return self._manager.refusal(request.max_tokens)

    def pause(self, request_id: int, paused: bool) -> None:
        """Let a live request rest after its token at hand, or go on; the robot may be listening meanwhile."""
        request = self._requests.get(request_id)
        if request is not None:
            request.paused = paused

    def works(self, now_ns: int) -> list[Work]:
        """Return what can run now: prompts in order of priority, then the decode step."""
        self._admit(now_ns)
        prompts: list[Work] = [*self._building.values(), *self._prompts.values()]
        return [*prompts, self._decode]

    # Admission.

    def _admit(self, now_ns: int) -> None:
        waiting = [request for request in self._requests.values() if request.state is RequestState.WAITING
                   and request.request_id not in self._building]
        for request in sorted(waiting, key=lambda request: (request.task, request.request_id)):
            if request.context is None and not self._bind(request, now_ns):
                continue
            tokens = request.prefill_tokens
            if not self._make_room(request, len(tokens), min_task=request.task + 1):
                continue
            self._start_prompt(request, tokens)

    def _bind(self, request: TextRequest, now_ns: int) -> bool:
        """Pin a prefix; False: the request has to wait (in isolated mode, for the prefix it has begun)."""
        admitted = [other for other in self._requests.values()
                    if other.context is not None or other.request_id in self._building]
        if len(admitted) >= self._config.max_admitted:
            return False
        dialogues = sum(other.task is TaskType.DIALOGUE for other in admitted)
        if (request.task is TaskType.DIALOGUE and self._config.max_admitted > 1
                and dialogues >= self._config.max_admitted - 1):
            return False
        if self._own_prefix is not None:
            work = self._own_prefix(request, lambda context: self._bind_own(request, context))
            if work is not None:
                self._building[request.request_id] = work
            return False
        prefix = self._manager.choose_text_prefix(now_ns)
        if prefix is None:
            return False
        request.context = self._manager.bind_context(request.task, prefix, now_ns)
        return True

    def _bind_own(self, request: TextRequest, context: Context) -> None:
        del self._building[request.request_id]
        request.context = context

    def _start_prompt(self, request: TextRequest, tokens: tuple[int, ...]) -> None:
        assert request.context is not None
        counters = self._runner.counters
        counters.tokens_recomputed += min(request.num_prefilled, len(tokens))
        request.num_prefilled = len(tokens)
        request.state = RequestState.PREFILL

        def complete(logits: Tensor) -> None:
            assert request.context is not None
            del self._prompts[request.request_id]
            request.context.advance(len(tokens))
            request.state = RequestState.DECODE
            self._take_tokens([request], logits)

        self._prompts[request.request_id] = PromptWork(
            self._runner, UnitKind.TEXT_PREFILL, request.rank, request.context, tokens, request.submitted_ns,
            complete, with_head=True)

    # Decode.

    def _decodable(self) -> Sequence[TextRequest]:
        """The requests of the next step, best first: by age since their last step, dialogue being less patient."""
        ready = [request for request in self._requests.values()
                 if request.state is RequestState.DECODE and not request.paused]
        if self._config.run_to_completion:
            ready.sort(key=lambda request: (request.submitted_ns, request.request_id))
        else:
            ready.sort(key=lambda request: request.last_step_ns + self._patience_ns[request.rank])
        return ready[:self._config.decode_batch]

    def _decode_arrived_ns(self) -> int:
        """Place of the decode step in order of arrival: one at a time, that of the oldest request; as a batch, after
        the prompts of all that are here, so that they decode together."""
        submitted = [request.submitted_ns for request in self._requests.values()]
        return max(submitted, default=0) if self._config.decode_batch > 1 else min(submitted, default=0)

    def _begin_step(self) -> Sequence[TextRequest]:
        requests = []
        for request in self._decodable():
            # An earlier one of this loop may have taken this one's blocks.
            if request.state is not RequestState.DECODE:
                continue
            if self._make_room(request, 1, min_task=request.task):
                requests.append(request)
            else:
                self._give_back(request)
        return [request for request in requests if request.state is RequestState.DECODE]

    def _deliver(self, requests: Sequence[TextRequest], logits: Tensor) -> None:
        for request in requests:
            assert request.context is not None
            request.context.advance(1)
        self._take_tokens(requests, logits)

    def _take_tokens(self, requests: Sequence[TextRequest], logits: Tensor) -> None:
        tokens = sample_tokens(logits, [request.sampling for request in requests],
                               [len(request.tokens) for request in requests],
                               [request.constraint for request in requests])
        now_ns = self._now_ns()
        for request, token in zip(requests, tokens):
            request.last_step_ns = now_ns
            self._take_token(request, token, now_ns)

    def _take_token(self, request: TextRequest, token: int, now_ns: int) -> None:
        self._runner.counters.text_tokens += 1
        if request.first_token_ns is None:
            request.first_token_ns = now_ns
        if request.constraint is not None:
            request.constraint.advance(token)
        if token in self._runner.spec.eos_token_ids:
            self.end(request.request_id, FinishReason.STOP)
            return
        request.tokens.append(token)
        text = request.stream.push(self._runner.model.detokenize([token]))
        self._emit(TextDelta(request_id=request.request_id, task=request.task, text=text,
                             num_tokens=len(request.tokens), steady_ns=now_ns))
        complete = request.constraint is not None and request.constraint.is_complete
        if request.stream.stopped or complete:
            self.end(request.request_id, FinishReason.STOP)
        elif len(request.tokens) >= request.sampling.max_tokens:
            self.end(request.request_id, FinishReason.LENGTH)

    # Memory.

    def _make_room(self, request: TextRequest, num_tokens: int, min_task: int) -> bool:
        """Take blocks for more tokens, from requests of lower priority if need be.

        :param min_task: only requests of this task or a lower priority may lose their blocks.
        """
        assert request.context is not None
        while not request.context.extend(num_tokens):
            own = (request.task, request.request_id)
            victims = [other for other in self._requests.values()
                       if other.context is not None and other.context.num_blocks and other.task >= min_task
                       and (other.task, other.request_id) > own]
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
        self._prompts.pop(request_id, None)
        building = self._building.pop(request_id, None)
        if building is not None:
            self._manager.abandon(building.builder)
        provenance: Provenance | None = None
        if request.context is not None:
            self._before_release()
            provenance = request.context.prefix.provenance
            if request.tokens:
                self._runner.ledger.read(tuple(zip(provenance.cameras, provenance.camera_stamps_ns)))
            request.context.release()
            request.context = None
        request.state = RequestState.FINISHED
        now_ns = self._now_ns()
        tail = request.stream.push(b'', final=True)
        if tail:
            self._emit(TextDelta(request_id=request_id, task=request.task, text=tail,
                                 num_tokens=len(request.tokens), steady_ns=now_ns))
        self._runner.counters.requests_ended += 1
        self._emit(TextResult(
            request_id=request_id, task=request.task, text=request.stream.text, tokens=tuple(request.tokens),
            finish_reason=reason, message=message, submitted_ns=request.submitted_ns,
            first_token_ns=request.first_token_ns, ended_ns=now_ns, provenance=provenance))
        return True

    def end_all(self, reason: FinishReason, message: str = '') -> None:
        """End every live request."""
        for request_id in list(self._requests):
            self.end(request_id, reason, message)
