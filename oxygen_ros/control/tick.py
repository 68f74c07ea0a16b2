# SPDX-License-Identifier: Apache-2.0
"""The decision of one control tick: which target the actuators get, or why they hold."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..types import RobotState, Target
from . import hold_reasons
from .arming import Arming, ArmState, ArmView
from .chunk_buffer import ChunkBuffer, Sample
from .clock import NS_PER_S
from .limits import ActuationMode, JointLimits, Limiter
from .ramp import Ramp
from .tick_config import TickConfig


class Decision(NamedTuple):
    """What one tick decided."""

    target: Target
    armed: bool  # true: send it to the actuators; false: show it only
    state: ArmState


class _Source(NamedTuple):
    """What the last fresh target was made from; a held one still names it."""

    chunk_ids: tuple[int, ...] = ()
    observation_ids: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    observation_steady_ns: int | None = None


class ControlTick:
    """Decides; publishes nothing, reads no clock.

    One thread calls `decide`, `undo` and `hold`. Any thread may call `restart` and `reconfigure`,
    which replace one reference that the next tick notices, and work on `arming` by its own rules.
    """

    def __init__(
        self,
        config: TickConfig,
        limits: JointLimits,
        buffer: ChunkBuffer,
        arming: Arming,
    ) -> None:
        """Begin without a target.

        :param config: settings.
        :param limits: of the joints.
        :param buffer: where the targets come from; only this tick may sample it.
        :param arming: who drives.
        :raises ValueError: the numbers of joints do not agree.
        """
        self.arming = arming
        self._buffer = buffer
        self._plan = self._make_plan(config, limits)
        self._seen_plan: tuple[TickConfig, Limiter] | None = None  # another one: start afresh
        self._seen_view: ArmView | None = None
        self._previous: list[float] | None = None  # [num_joints], never written to
        self._ramp = Ramp()
        self._source = _Source()
        # As they were before the last decision.
        self._before: tuple[list[float] | None, _Source] = self._previous, self._source

    @property
    def config(self) -> TickConfig:
        """The settings that the next tick uses."""
        return self._plan[0]

    def restart(self) -> None:
        """Forget the last target: the next one starts from the measured joints (activation)."""
        self._plan = (self._plan[0], self._plan[1])

    def reconfigure(self, config: TickConfig, limits: JointLimits) -> None:
        """Use other settings from the next tick on, starting from the measured joints.

        :param config: settings.
        :param limits: of the joints.
        :raises ValueError: the numbers of joints do not agree; nothing changes then.
        """
        self._plan = self._make_plan(config, limits)

    def _make_plan(self, config: TickConfig, limits: JointLimits) -> tuple[TickConfig, Limiter]:
        for name, num_joints in (
            ('limits', limits.num_joints),
            ('buffer', self._buffer.num_joints),
        ):
            if num_joints != config.num_joints:
                raise ValueError(f'{name}: expected {config.num_joints} joints, got {num_joints}')
        return config, Limiter(limits, config.mode, config.period_ns / NS_PER_S)

    def decide(self, tick: int, deadline_ns: int, state: RobotState | None) -> Decision:
        """Decide one tick.

        :param tick: its number.
        :param deadline_ns: its deadline on the steady clock, in nanoseconds.
        :param state: the newest measured joints; None: never measured.
        :return: the target, always num_joints long; NaN, and never armed, while no safe value
            is known.
        """
        (config, limiter), view = self._refresh()
        self._before = self._previous, self._source
        sample = self._buffer.sample(deadline_ns)
        measured, state_reason = self._read_state(config, deadline_ns, state)
        if view.state is ArmState.TAKEOVER:
            self._previous = measured  # the joints are the operator's; follow them
            return self._held(tick, deadline_ns, view, config, hold_reasons.TAKEOVER)
        if self._previous is None:
            self._start_from(config, measured)
        if not config.require_state and measured is None:
            state_reason = ''
        reason = (
            _requested(view)
            or (hold_reasons.NO_LIMITS if config.awaits_limits else '')
            or state_reason
            or self._refusal(config, deadline_ns, sample)
        )
        if reason or sample is None:
            return self._held(tick, deadline_ns, view, config, reason)
        wanted = self._ramp.apply(sample.values, deadline_ns)
        if config.deltas:
            assert self._previous is not None  # the joints are measured, or state_reason is set
            wanted = [
                before + value if is_delta else value
                for before, value, is_delta in zip(self._previous, wanted, config.deltas)
            ]
        values, reason = limiter.apply(
            wanted, self._previous, measured, check_tracking=view.sending and not config.dry_run
        )
        if values is None:
            return self._held(tick, deadline_ns, view, config, reason)
        self._previous = values
        self._source = _Source(
            sample.chunk_ids, sample.observation_ids, sample.weights, sample.observation_steady_ns
        )
        return self._decision(tick, deadline_ns, view, values, '')

    @property
    def is_outdated(self) -> bool:
        """Whether another thread has changed who drives, or how, since the last decision."""
        return self._plan is not self._seen_plan or self.arming.view() != self._seen_view

    def undo(self) -> None:
        """Forget that the last decision was made: nobody has seen its target.

        The next one steps from the target before it.
        """
        self._previous, self._source = self._before

    def hold(self, tick: int, deadline_ns: int, reason: str) -> Decision:
        """Decide to hold whatever the chunks say: the last target before the loop ends.

        :param tick: its number.
        :param deadline_ns: its time on the steady clock, in nanoseconds.
        :param reason: a constant of `hold_reasons`.
        :return: the last target (position) or zeros (velocity); armed if targets were being sent.
        """
        (config, _), view = self._refresh()
        self._before = self._previous, self._source
        return self._held(tick, deadline_ns, view, config, reason)

    def _refresh(self) -> tuple[tuple[TickConfig, Limiter], ArmView]:
        """Read what other threads replace, once per tick; forget the last target if asked to."""
        plan = self._plan
        view = self.arming.view()
        seen = self._seen_view
        if plan is not self._seen_plan or seen is None or view.generation != seen.generation:
            self._seen_plan = plan
            self._previous = None
            self._ramp.clear()
            self._source = _Source()
        self._seen_view = view
        return plan, view

    def _start_from(self, config: TickConfig, measured: list[float] | None) -> None:
        if measured is None:
            return
        velocity = config.mode is ActuationMode.VELOCITY
        self._previous = [0.0] * config.num_joints if velocity else measured
        self._ramp.begin(_rest(config, self._previous), config.activation_ramp_ns)

    @staticmethod
    def _read_state(
        config: TickConfig,
        deadline_ns: int,
        state: RobotState | None,
    ) -> tuple[list[float] | None, str]:
        if state is None:
            return None, hold_reasons.NO_STATE
        if deadline_ns - state.steady_ns > config.state_max_age_ns:
            return None, hold_reasons.STALE_STATE
        measured: list[float] = state.positions.tolist()
        if len(measured) != config.num_joints or not all(map(math.isfinite, measured)):
            return None, hold_reasons.BAD_STATE
        return measured, ''

    def _refusal(self, config: TickConfig, deadline_ns: int, sample: Sample | None) -> str:
        if sample is None:
            has_chunk = self._buffer.has_chunk
            return hold_reasons.CHUNK_EXHAUSTED if has_chunk else hold_reasons.NO_CHUNK
        if sample.fault:
            return sample.fault
        if deadline_ns - sample.observation_steady_ns > config.max_observation_age_ns:
            return hold_reasons.STALE_OBSERVATION
        return ''

    def _held(
        self,
        tick: int,
        deadline_ns: int,
        view: ArmView,
        config: TickConfig,
        reason: str,
    ) -> Decision:
        values = self._previous
        if config.mode is ActuationMode.VELOCITY:
            values = [0.0] * config.num_joints
            self._previous = values
        if values is None:
            unknown = [math.nan] * config.num_joints
            return self._decision(tick, deadline_ns, view._replace(sending=False), unknown, reason)
        self._ramp.resume(_rest(config, values), config.recovery_ramp_ns)
        return self._decision(tick, deadline_ns, view, values, reason)

    def _decision(
        self,
        tick: int,
        deadline_ns: int,
        view: ArmView,
        values: list[float],
        reason: str,
    ) -> Decision:
        source = self._source
        age_ns = None
        if source.observation_steady_ns is not None:
            age_ns = deadline_ns - source.observation_steady_ns
        target = Target(
            tick,
            deadline_ns,
            np.array(values),
            bool(reason),
            reason,
            source.chunk_ids,
            source.observation_ids,
            source.weights,
            age_ns,
        )
        return Decision(target, view.sending, view.state)


def _rest(config: TickConfig, values: list[float]) -> list[float]:
    """Return what a chunk would have to say for the joints to stay where the target is."""
    if not config.deltas:
        return values
    return [0.0 if is_delta else value for value, is_delta in zip(values, config.deltas)]


def _requested(view: ArmView) -> str:
    if view.state is ArmState.STOPPED:
        return hold_reasons.STOPPED
    if view.state is ArmState.HOLDING:
        return hold_reasons.HOLD_REQUESTED
    return ''
