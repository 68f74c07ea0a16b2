# SPDX-License-Identifier: Apache-2.0
"""The action task: its context on the newest complete prefix, when a pass is due, the pass."""

from __future__ import annotations

from torch import Tensor

from ..types import ActionChunk, Observation, Provenance, RobotState
from .attention import MaskKind, Span
from .clock import WorkClock
from .config import ActionConfig, ActionMode
from .keyed_random import keyed_noise
from .kv.context import Context
from .model import Attend
from .model_runner import ModelRunner
from .scheduling.cost_model import CostModel
from .scheduling.work import UnitKey, UnitKind


class ReadyAction:
    """An action context whose prompt stands: what passes on one prefix share."""

    def __init__(
        self,
        runner: ModelRunner,
        context: Context,
        observation: Observation,
        num_prompt: int,
        noise_seed: int,
    ) -> None:
        prefix = context.prefix
        spec = runner.spec
        self.context = context
        self.observation = observation
        self.position = prefix.num_tokens + num_prompt
        self.noise: Tensor = keyed_noise(
            runner.model.noise_shape(), noise_seed, observation.observation_id
        )
        self.noise = self.noise.to(runner.model.device)
        mask = MaskKind.CAUSAL if spec.action_causal else MaskKind.BIDIRECTIONAL
        blocks = context.writable_blocks(spec.action_suffix_tokens)

        # Every step and every pass rewrites the same rows of the run, so one plan serves them all.
        def attend(num_tokens: int, num_own: int, mask: MaskKind) -> Attend:
            return runner.attend(
                runner.plan(
                    [
                        Span(
                            num_tokens=num_tokens,
                            prefix_block=prefix.first_block,
                            prefix_tokens=prefix.num_tokens,
                            block_table=blocks,
                            num_own=num_own,
                            mask=mask,
                        )
                    ]
                )
            )

        num_head = spec.action_head_tokens
        self.attend = attend(spec.action_suffix_tokens - num_head, num_prompt + num_head, mask)
        self.attend_head = (
            attend(num_head, num_prompt, MaskKind.CAUSAL) if num_head else self.attend
        )
        self.shared = runner.model.prepare_prefix(runner.prefix_kv(prefix))


class ActionRunner:
    """Decides when a pass is due on a fixed grid of time, and makes it.

    The newest ready context serves until the next one is complete, so a long prefill never blocks
    an action.
    """

    def __init__(
        self, runner: ModelRunner, config: ActionConfig, clock: WorkClock, cost_model: CostModel
    ) -> None:
        self.config = config
        self._runner = runner
        self._clock = clock
        self._cost_model = cost_model
        self._unit = UnitKey(UnitKind.DENOISE, runner.spec.action_suffix_tokens)
        self._period_ns = round(config.period_s * 1e9)
        self._ready: ReadyAction | None = None
        self._due_ns = 0
        self._last_pass_ns: int | None = None
        self._last_observation_id = 0
        self._last_state_stamp_ns: int | None = None
        self._num_chunks = 0
        self.epoch = 0

    @property
    def ready(self) -> ReadyAction | None:
        """The context that the next pass will use."""
        return self._ready

    @property
    def due_ns(self) -> int:
        """The next point of the grid."""
        return self._due_ns

    def reset(self) -> None:
        """Count chunks from zero again, and take any input as new."""
        self._num_chunks = 0
        self._last_pass_ns = None
        self._last_observation_id = 0
        self._last_state_stamp_ns = None

    def align(self, start_ns: int) -> None:
        """Lay the grid: passes may be due at start_ns + k * period."""
        self._due_ns = start_ns

    def replace(self, ready: ReadyAction | None) -> None:
        """Serve passes from a new context; the former gives its pages and prefix back at once."""
        if self._ready is not None:
            self._ready.context.release()
        self._ready = ready

    def deadline_ns(self, now_ns: int) -> int:
        """Return the first point of the grid after now."""
        if now_ns < self._due_ns:
            return self._due_ns
        return self._due_ns + ((now_ns - self._due_ns) // self._period_ns + 1) * self._period_ns

    def skip_to(self, now_ns: int) -> None:
        """Count the points of the grid up to now as used."""
        self._due_ns = self.deadline_ns(now_ns)

    def is_due(self, now_ns: int, state: RobotState | None) -> bool:
        """Return whether a pass should start now: its time has come and its inputs are new."""
        return (
            self._ready is not None
            and now_ns >= self._due_ns
            and self._has_new_inputs(now_ns, state)
        )

    def _has_new_inputs(self, now_ns: int, state: RobotState | None) -> bool:
        assert self._ready is not None
        fresh = self._runner.spec.is_state_fresh
        if fresh and state is None:
            return False  # a pass without the state that the model needs would be a guess
        if self._ready.observation.observation_id != self._last_observation_id:
            return True
        if not fresh:
            return False  # the same noise on the same prefix would give the same chunk
        if self.config.mode is ActionMode.CHUNKED:
            last_ns = self._last_pass_ns
            # Half a period of slack: a pass that started a little late does not cost the next one
            # its turn.
            patience_ns = self.config.chunk_periods * self._period_ns - self._period_ns // 2
            return last_ns is None or now_ns - last_ns >= patience_ns
        return state is not None and state.stamp_ns != self._last_state_stamp_ns

    def run(self, state: RobotState | None) -> ActionChunk:
        """Make one pass on the newest ready context; unsliced."""
        ready = self._ready
        assert ready is not None
        model = self._runner.model
        counters = self._runner.counters
        started_ns = now_ns = self._clock.now_ns()
        action = model.begin_action(
            ready.noise, None if state is None else state.positions, ready.position
        )
        model.prepare_action(action, ready.shared, ready.attend_head)
        for step in range(action.num_steps):
            counters.units[UnitKind.DENOISE] += 1
            model.denoise_step(action, step, ready.attend)
            self._clock.charge(self._cost_model.estimate_ns(self._unit))
            before_ns, now_ns = now_ns, self._clock.now_ns()
            self._cost_model.observe(self._unit, now_ns - before_ns)
        values = model.finish_action(action)
        ended_ns = self._clock.now_ns()
        counters.action_passes += 1
        self._num_chunks += 1
        self._last_pass_ns = started_ns
        self._last_observation_id = ready.observation.observation_id
        self._last_state_stamp_ns = None if state is None else state.stamp_ns
        observation = ready.observation
        fresh = state if self._runner.spec.is_state_fresh else None
        used = observation.state if fresh is None else fresh
        start = observation if fresh is None else fresh
        return ActionChunk(
            chunk_id=self._num_chunks,
            epoch=self.epoch,
            values=values,
            start_steady_ns=start.steady_ns,
            start_stamp_ns=start.stamp_ns,
            step_ns=round(self._runner.spec.action_dt_s * 1e9),
            observation_steady_ns=observation.steady_ns,
            pass_started_ns=started_ns,
            pass_ended_ns=ended_ns,
            provenance=provenance_of(
                observation, used, model.checksum, ready.context.prefix.provenance.prefix_hash
            ),
        )


def provenance_of(
    observation: Observation, state: RobotState | None, checksum: str, prefix_hash: str = ''
) -> Provenance:
    """Return where a result on this observation comes from."""
    return Provenance(
        observation_id=observation.observation_id,
        stamp_ns=observation.stamp_ns,
        cameras=tuple(frame.camera for frame in observation.frames),
        camera_stamps_ns=tuple(frame.stamp_ns for frame in observation.frames),
        state_stamp_ns=0 if state is None else state.stamp_ns,
        model_checksum=checksum,
        prefix_hash=prefix_hash,
    )
