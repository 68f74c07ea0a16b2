# SPDX-License-Identifier: Apache-2.0
"""Starts and finishes prefixes: the shared one of each observation, and a request's own copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...types import FloatArray, Observation, RobotState, TaskType
from ..action_runner import ActionRunner, provenance_of, ReadyAction
from ..config import EngineConfig
from ..kv.context import Context
from ..kv.manager import KVCacheManager
from ..model_runner import ModelRunner
from ..scheduling.work import Rank, UnitKind, Work
from ..spec import StateIn
from .prefix_work import FeatureCache, PrefixWork
from .prompt_work import PromptWork


class Sensors(Protocol):
    """What the engine pulls when it is ready for it, so that the newest always wins."""

    def observation(self, now_ns: int) -> Observation | None:
        """Return the newest observation that was not returned before, or None."""
        ...

    def state(self, now_ns: int) -> RobotState | None:
        """Return the newest measured state that may be acted on, or None."""
        ...


class SharedPrefixes:
    """Builds one shared prefix at a time, then the action's private prompt on it.

    Only the thread that owns the engine calls it.
    """

    def __init__(
        self,
        runner: ModelRunner,
        manager: KVCacheManager,
        action: ActionRunner,
        config: EngineConfig,
        now_ns: Callable[[], int],
    ) -> None:
        self.features = FeatureCache(config.reuse_vision)
        self.instruction = ''
        self.work: Work | None = None  # the prefix, then the action's prompt on it
        self._runner = runner
        self._manager = manager
        self._action = action
        self._seed, self._hashed = config.seed, config.hash_inputs
        self._now_ns = now_ns
        self._period_ns = round(config.observation_period_s * 1e9)
        self._next_ns = now_ns()
        self._newest: Observation | None = None  # of the newest complete prefix
        self._prompt_context: Context | None = None  # whose prompt is being prefilled

    def begin(self, now_ns: int, sensors: Sensors) -> None:
        """Start on the newest observation, if one is due and a slot is free."""
        if self.work is not None or now_ns < self._next_ns or not self._manager.can_begin_prefix():
            return
        observation = sensors.observation(now_ns)
        if observation is None:
            return
        if observation.state is None and self._runner.spec.state_in is StateIn.PROMPT:
            return  # a prefix without the state that the model reads there would be a guess
        self._next_ns = max(self._next_ns + self._period_ns, now_ns)
        self._runner.counters.observations_started += 1
        self.work = self._begin(observation, Rank.PREFIX, self._complete, self.features)

    def begin_own(
        self, task: TaskType, rank: Rank, complete: Callable[[Context], None]
    ) -> PrefixWork | None:
        """Isolated caches: encode and prefill the newest observation for one text request.

        :return: None: there is no observation yet, or no slot.
        """
        observation = self._newest
        if observation is None or not self._manager.can_begin_prefix():
            return None

        def register(work: PrefixWork) -> None:
            complete(self._manager.register_private_prefix(work.builder, self._now_ns(), task))

        return self._begin(observation, rank, register, FeatureCache(enabled=False))

    def forget(self) -> None:
        """Drop the work at hand and what was seen; prefixes that text pins live on."""
        if isinstance(self.work, PrefixWork):
            self._manager.abandon(self.work.builder)
        elif self._prompt_context is not None:
            self._prompt_context.release()
        self._prompt_context = None
        self.work = None
        self.features.clear()
        self._manager.forget_newest()
        self._newest = None
        self.restart()

    def restart(self) -> None:
        """Let the next observation begin at once."""
        self._next_ns = self._now_ns()

    def _begin(
        self,
        observation: Observation,
        rank: Rank,
        complete: Callable[[PrefixWork], None],
        features: FeatureCache,
    ) -> PrefixWork:
        model = self._runner.model
        state = observation.state if model.spec.state_in is StateIn.PROMPT else None
        positions: FloatArray | None = None if state is None else state.positions
        prompt = tuple(model.prefix_prompt(self._instruction_of(observation), positions))
        num_visual = len(observation.frames) * model.spec.tokens_per_image
        builder = self._manager.begin_prefix(
            num_visual + len(prompt),
            num_visual_tokens=num_visual,
            steady_ns=observation.steady_ns,
            provenance=provenance_of(observation, state, model.checksum),
        )
        assert builder is not None  # a slot is free
        return PrefixWork(
            self._runner, features, observation, prompt, builder, complete, rank, self._hashed
        )

    def _instruction_of(self, observation: Observation) -> str:
        return observation.instruction or self.instruction

    def _complete(self, work: PrefixWork) -> None:
        now_ns = self._now_ns()
        prefix = self._manager.register_immutable_prefix(work.builder)
        self._newest = work.observation
        self.work = None
        context = self._manager.bind_context(TaskType.PHYSICAL_ACTION, prefix, now_ns)
        tokens = tuple(self._runner.model.action_prompt(self._instruction_of(work.observation)))

        def ready(_: object = None) -> None:
            context.advance(len(tokens))
            self._action.replace(
                ReadyAction(self._runner, context, work.observation, len(tokens), self._seed)
            )
            self.work = None
            self._prompt_context = None

        if not tokens:
            ready()
            return
        self._prompt_context = context
        self.work = PromptWork(
            self._runner,
            UnitKind.ACTION_PROMPT,
            Rank.PREFIX,
            context,
            tokens,
            work.arrived_ns,
            ready,
            with_head=False,
        )
