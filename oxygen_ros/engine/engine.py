"""The engine: one shared perceptual prefix, read by an action task and by text requests, in slices.

The façade is synchronous and owns no thread: whoever calls `run_cycle` owns the engine, its model and its memory.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

from ..types import (ActionChunk, FinishReason, FloatArray, Observation, RobotState, SamplingParams, TaskType,
                     TextDelta, TextResult)
from .action_runner import ActionRunner, ReadyAction, provenance_of
from .attention import create_backend
from .clock import WorkClock
from .config import EngineConfig, Policy
from .constraint import TokenConstraint
from .cost_model import CostModel
from .counters import Counters
from .fifo import FifoScheduler
from .context import Context
from .manager import KVCacheManager, Sharing
from .memory_report import memory_report, MemoryReport
from .model import VLAModel
from .model_runner import ModelRunner
from .prefix_work import FeatureCache, PrefixWork
from .prompt_work import PromptWork
from .requests import TextRequest
from .scheduler import Scheduler
from .spec import StateIn
from .text_queue import TextQueue
from .timeline import EventKind, Timeline
from .work import Rank, UnitKind, Work

EngineEvent = ActionChunk | TextDelta | TextResult


class Sensors(Protocol):
    """What the engine pulls when it is ready for it, so that the newest always wins."""

    def observation(self, now_ns: int) -> Observation | None:
        """Return the newest observation that was not returned before, or None."""
        ...

    def state(self, now_ns: int) -> RobotState | None:
        """Return the newest measured state that may be acted on, or None."""
        ...


class Engine:
    """One model, one KV cache, three kinds of task.

    Only one thread may call it. Results leave by `emit`, in the middle of `run_cycle` and as soon as they stand.

    :param emit: takes chunks, text deltas and results; must return at once.
    :param poll: called between slices: the place to submit, cancel and change settings from an inbox.
    """

    def __init__(self, model: VLAModel, config: EngineConfig, clock: WorkClock, cost_model: CostModel,
                 sensors: Sensors, emit: Callable[[EngineEvent], None],
                 poll: Callable[[], None] = lambda: None) -> None:
        self.model = model
        self.config = config
        self.counters = Counters()
        self.timeline = Timeline()
        self.instruction = ''
        self.peak: MemoryReport | None = None  # of the moment at which isolated caches would have taken most
        self._clock = clock
        self.sensors = sensors
        self._emit = emit
        self._poll = poll
        self._stopping = False
        spec = model.spec
        self.manager = KVCacheManager(spec, config.kv, model.device, model.dtype)
        backend = create_backend(config.attention_backend, self.manager.cache.data, spec.num_heads)
        max_positions = spec.max_prefix_tokens + max(config.max_text_tokens, spec.max_action_tokens) + 1
        self.runner = ModelRunner(model, self.manager.cache, backend, self.counters, max_positions)
        self.features = FeatureCache(config.reuse_vision)
        scheduler = FifoScheduler if config.policy is Policy.FIFO else Scheduler
        self.scheduler = scheduler(config.scheduler, cost_model, clock, self.timeline)
        self.action = ActionRunner(self.runner, config.action, clock, cost_model)
        isolated = config.kv.sharing == Sharing.ISOLATED
        self.text = TextQueue(self.runner, self.manager, config, clock.now_ns, lambda event: self._emit(event),
                              self._begin_own_prefix if isolated else None, self._note_peak)
        self._observation_period_ns = round(config.observation_period_s * 1e9)
        self._next_observation_ns = clock.now_ns()
        self._newest: Observation | None = None  # of the newest complete prefix
        self._prefix_work: Work | None = None  # the prefix, then the action's prompt on it
        self._action_prompt_context: Context | None = None

    # Requests.

    def set_instruction(self, instruction: str) -> None:
        """Change what the actions should do; in force from the next observation on."""
        self.instruction = instruction

    def submit_text(self, request_id: int, task: TaskType, prompt: str, sampling: SamplingParams,
                    constraint: TokenConstraint | None = None) -> None:
        """Take a text request; it ends in exactly one TextResult."""
        tokens = tuple(self.model.text_prompt(prompt))
        self.text.submit(TextRequest(request_id, task, tokens, sampling, constraint, self._clock.now_ns()))

    def cancel_text(self, request_id: int, reason: FinishReason = FinishReason.CANCELLED, message: str = '') -> bool:
        """End a text request at once; False: it has ended already."""
        return self.text.end(request_id, reason, message)

    def reset_observations(self) -> None:
        """Forget what was seen: time jumped. Prefixes pinned by text live on until their requests end."""
        self._abandon_prefix_work()
        self.action.replace(None)
        self.features.clear()
        self.manager.forget_newest()
        self._newest = None
        self._next_observation_ns = self._clock.now_ns()

    def stop(self) -> None:
        """End all requests and give every page back; the engine can go on afterwards."""
        self.text.end_all(FinishReason.ERROR, 'the engine was stopped')
        self.reset_observations()

    def interrupt(self) -> None:
        """Make the running `run_cycle` return at the next slice border."""
        self._stopping = True

    # The cycle.

    def run_cycle(self, now_ns: int, deadline_ns: int) -> int:
        """Make the action pass if one is due, then run slices until the deadline is near.

        :param now_ns: steady clock.
        :param deadline_ns: when the next action is due (steady clock).
        :return: action passes and slices that ran; 0: there was nothing to do.
        """
        self._stopping = False
        with torch.inference_mode():
            self._poll()
            num_passes = self._run_due_action(now_ns)
            return num_passes + self.scheduler.run_slices(deadline_ns, self._ready_works, self._interrupted)

    def _run_due_action(self, now_ns: int) -> int:
        if now_ns < self.action.due_ns:
            return 0
        due_ns = self.action.due_ns
        state = self.sensors.state(now_ns)
        is_due = self.action.is_due(now_ns, state)
        # A point of the grid without new inputs is used up, so that passes keep the grid's phase.
        self.action.skip_to(now_ns)
        if not is_due:
            return 0
        chunk = self.action.run(state)
        self._emit(chunk)
        assert self.action.ready is not None
        self.runner.ledger.read_observation(self.action.ready.observation)
        self.timeline.record(EventKind.ACTION_WAIT, due_ns, max(due_ns, chunk.pass_started_ns), 0, chunk.chunk_id)
        self.timeline.record(EventKind.ACTION, chunk.pass_started_ns, chunk.pass_ended_ns, 1,
                             chunk.provenance.observation_id)
        return 1

    def _interrupted(self) -> bool:
        now_ns = self._clock.now_ns()
        return self._stopping or self.action.is_due(now_ns, self.sensors.state(now_ns))

    def _ready_works(self) -> list[Work]:
        self._poll()
        now_ns = self._clock.now_ns()
        if self._prefix_work is None:
            self._begin_observation(now_ns)
        works = self.text.works(now_ns)
        return works if self._prefix_work is None else [self._prefix_work, *works]

    # The shared prefix, and the action's context on it.

    def _begin_observation(self, now_ns: int) -> None:
        if now_ns < self._next_observation_ns or not self.manager.can_begin_prefix():
            return
        observation = self.sensors.observation(now_ns)
        if observation is None:
            return
        self._next_observation_ns = max(self._next_observation_ns + self._observation_period_ns, now_ns)
        self.counters.observations_started += 1
        self._prefix_work = self._begin_prefix(observation, Rank.PREFIX, self._complete_shared)

    def _prompt_state(self, observation: Observation) -> FloatArray | None:
        in_prompt = self.model.spec.state_in is StateIn.PROMPT
        return observation.state.positions if in_prompt and observation.state is not None else None

    def _begin_prefix(self, observation: Observation, rank: Rank,
                      complete: Callable[[PrefixWork], None], features: FeatureCache | None = None) -> PrefixWork:
        prompt = tuple(self.model.prefix_prompt(observation.instruction or self.instruction,
                                                self._prompt_state(observation)))
        num_visual = len(observation.frames) * self.model.spec.tokens_per_image
        state = observation.state if self.model.spec.state_in is StateIn.PROMPT else None
        builder = self.manager.begin_prefix(
            num_visual + len(prompt), num_visual_tokens=num_visual, steady_ns=observation.steady_ns,
            provenance=provenance_of(observation, state, self.model.checksum))
        assert builder is not None
        return PrefixWork(self.runner, self.features if features is None else features, observation, prompt, builder,
                          complete, rank)

    def _complete_shared(self, work: PrefixWork) -> None:
        now_ns = self._clock.now_ns()
        prefix = self.manager.register_immutable_prefix(work.builder, now_ns)
        self._newest = work.observation
        context = self.manager.bind_context(TaskType.PHYSICAL_ACTION, prefix, now_ns)
        tokens = tuple(self.model.action_prompt(work.observation.instruction or self.instruction))

        def ready(_: object = None) -> None:
            context.advance(len(tokens))
            self.action.replace(ReadyAction(self.runner, context, work.observation, len(tokens), self.config.seed))
            self._prefix_work = None
            self._action_prompt_context = None

        if tokens:
            self._action_prompt_context = context
            self._prefix_work = PromptWork(self.runner, UnitKind.ACTION_PROMPT, Rank.PREFIX, context, tokens,
                                           work.arrived_ns, ready, with_head=False)
        else:
            ready()

    def _abandon_prefix_work(self) -> None:
        work = self._prefix_work
        if isinstance(work, PrefixWork):
            self.manager.abandon(work.builder)
        elif work is not None and self._action_prompt_context is not None:
            self._action_prompt_context.release()
            self._action_prompt_context = None
        self._prefix_work = None

    def _begin_own_prefix(self, request: TextRequest, complete: Callable[[Context], None]) -> PrefixWork | None:
        """Isolated caches: a text request encodes and prefills the newest observation for itself."""
        observation = self._newest
        if observation is None or not self.manager.can_begin_prefix():
            return None

        def register(work: PrefixWork) -> None:
            complete(self.manager.register_private_prefix(work.builder, self._clock.now_ns(), request.task))

        return self._begin_prefix(observation, request.rank, register, FeatureCache(enabled=False))

    # Care.

    def _note_peak(self) -> None:
        report = memory_report(self.manager, self._clock.now_ns())
        if self.peak is None or report.bytes_isolated > self.peak.bytes_isolated:
            self.peak = report

    @property
    def is_building(self) -> bool:
        """Whether a prefix, or the action's prompt on it, is unfinished."""
        return self._prefix_work is not None

    def swap(self, sensors: Sensors,
             emit: Callable[[EngineEvent], None]) -> tuple[Sensors, Callable[[EngineEvent], None]]:
        """Take other sensors and another outlet (for warm-up); return the former ones."""
        former = self.sensors, self._emit
        self.sensors, self._emit = sensors, emit
        return former

    def reset_statistics(self) -> None:
        """Start all counts again from zero."""
        self.counters.reset()
        self.runner.ledger.reset()
        self.timeline.clear()
        self.peak = None
        self.action.reset()
        self._next_observation_ns = self._clock.now_ns()

    def check_integrity(self) -> None:
        """Assert the invariants of memory; cheap enough for idle time and for every test."""
        self.manager.check_integrity()
