# SPDX-License-Identifier: Apache-2.0
"""The engine: one shared perceptual prefix, read by an action and by text requests, in slices.

The façade is synchronous and owns no thread: whoever calls `run_cycle` owns the engine, its model
and its memory.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..types import ActionChunk, FinishReason, SamplingParams, TaskType, TextDelta, TextResult
from .action_runner import ActionRunner
from .attention import create_backend
from .clock import WorkClock
from .config import EngineConfig, Policy, Sharing
from .counters import Counters
from .kv.manager import KVCacheManager
from .kv.memory_report import memory_report, MemoryReport
from .model import VLAModel
from .model_runner import ModelRunner
from .prefixes.shared_prefixes import Sensors, SharedPrefixes
from .scheduling.cost_model import CostModel
from .scheduling.fifo import FifoScheduler
from .scheduling.scheduler import Scheduler
from .scheduling.timeline import EventKind, Timeline
from .scheduling.work import Work
from .text.constraint import TokenConstraint
from .text.requests import TextRequest
from .text.text_queue import TextQueue

EngineEvent = ActionChunk | TextDelta | TextResult
Emit = Callable[[EngineEvent], None]


class Engine:
    """One model, one KV cache, three kinds of task.

    Only one thread may call it. Results leave by `emit`, in the middle of `run_cycle` and as soon
    as they stand.

    :param emit: takes chunks, text deltas and results; must return at once.
    :param poll: called between slices: the place to submit, cancel and change settings from an
        inbox.
    """

    def __init__(
        self,
        model: VLAModel,
        config: EngineConfig,
        clock: WorkClock,
        cost_model: CostModel,
        sensors: Sensors,
        emit: Emit,
        poll: Callable[[], None] = lambda: None,
    ) -> None:
        self.model = model
        self.config = config
        self.sensors = sensors
        self.counters = Counters()
        self._pass_ended_ns = 0
        self.timeline = Timeline()
        # Of the moment at which isolated caches would have taken most.
        self.peak: MemoryReport | None = None
        self._clock = clock
        self._emit = emit
        self._poll = poll
        self._stopping = False
        spec = model.spec
        self.manager = KVCacheManager(spec, config.kv, model.device, model.dtype)
        cache = self.manager.cache
        # A model that replays CUDA graphs needs the backend that keeps its indices in place.
        name = getattr(model, 'attention_backend', config.attention_backend)
        backend = create_backend(name, cache.data, spec.num_heads)
        longest_own = max(config.max_text_tokens, spec.max_action_tokens)
        self.runner = ModelRunner(
            model, cache, backend, self.counters, spec.max_prefix_tokens + longest_own + 1
        )
        scheduler = FifoScheduler if config.policy is Policy.FIFO else Scheduler
        self.scheduler = scheduler(config.scheduler, cost_model, clock, self.timeline)
        self.action = ActionRunner(self.runner, config.action, clock, cost_model)
        self.prefixes = SharedPrefixes(
            self.runner, self.manager, self.action, config, clock.now_ns
        )
        isolated = config.kv.sharing == Sharing.ISOLATED
        self.text = TextQueue(
            self.runner,
            self.manager,
            config,
            clock.now_ns,
            lambda event: self._emit(event),
            self.prefixes.begin_own if isolated else None,
            self._note_peak,
        )

    # Requests.

    def set_instruction(self, instruction: str) -> None:
        """Change what the actions should do; in force from the next observation on."""
        self.prefixes.instruction = instruction

    def submit_text(
        self,
        request_id: int,
        task: TaskType,
        prompt: str,
        sampling: SamplingParams,
        constraint: TokenConstraint | None = None,
    ) -> None:
        """Take a text request; it ends in exactly one TextResult."""
        tokens = tuple(self.model.text_prompt(prompt))
        self.text.submit(
            TextRequest(request_id, task, tokens, sampling, constraint, self._clock.now_ns())
        )

    def cancel_text(
        self, request_id: int, reason: FinishReason = FinishReason.CANCELLED, message: str = ''
    ) -> bool:
        """End a text request at once; False: it has ended already."""
        return self.text.end(request_id, reason, message)

    def reset_observations(self) -> None:
        """Forget what was seen: time jumped. Prefixes that text pins live on to its end."""
        self.action.replace(None)
        self.prefixes.forget()

    def stop(self) -> None:
        """End all requests and give every page back; the engine can go on afterwards."""
        self.text.end_all(FinishReason.ERROR, 'the engine was stopped')
        self.reset_observations()

    def interrupt(self) -> None:
        """Make the running `run_cycle` return at the next slice border; any thread."""
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
            return num_passes + self.scheduler.run_slices(
                deadline_ns, self._ready_works, self._interrupted
            )

    def _run_due_action(self, now_ns: int) -> int:
        due_ns = self.action.due_ns
        if now_ns < due_ns:
            return 0
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
        started_ns = chunk.pass_started_ns
        # Behind a slice or a late wake-up. What the pass before it took is no wait of this kind.
        free_ns = max(due_ns, self._pass_ended_ns)
        self._pass_ended_ns = chunk.pass_ended_ns
        self.timeline.record(
            EventKind.ACTION_WAIT, free_ns, max(free_ns, started_ns), 0, chunk.chunk_id
        )
        self.timeline.record(
            EventKind.ACTION, started_ns, chunk.pass_ended_ns, 1, chunk.provenance.observation_id
        )
        return 1

    def _interrupted(self) -> bool:
        now_ns = self._clock.now_ns()
        return self._stopping or self.action.is_due(now_ns, self.sensors.state(now_ns))

    def _ready_works(self) -> list[Work]:
        self._poll()
        now_ns = self._clock.now_ns()
        self.prefixes.begin(now_ns, self.sensors)
        works = self.text.works(now_ns)
        return works if self.prefixes.work is None else [self.prefixes.work, *works]

    # Care.

    @property
    def is_building(self) -> bool:
        """Whether a prefix, or the action's prompt on it, is unfinished."""
        return self.prefixes.work is not None

    def _note_peak(self) -> None:
        report = memory_report(self.manager, self._clock.now_ns())
        if self.peak is None or report.bytes_isolated > self.peak.bytes_isolated:
            self.peak = report

    def swap(self, sensors: Sensors, emit: Emit) -> tuple[Sensors, Emit]:
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
        self.prefixes.restart()

    def check_integrity(self) -> None:
        """Assert the invariants of memory; cheap enough for idle time and for every test."""
        self.manager.check_integrity()
