# SPDX-License-Identifier: Apache-2.0
"""From chunks to targets: what decides a tick and counts it, in the engine's process or its own.

Knows neither the engine nor torch: a tick in a process of its own loads only this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
import traceback
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..control import (
    Arming,
    ArmState,
    ChunkBuffer,
    ControlTick,
    Decision,
    hold_reasons,
    JointLimits,
    limits_of_description,
    TickConfig,
    TickStatistics,
)
from ..types import RobotState
from .clock import RobotClock, ros_now_ns
from .faults import FaultLog, Logger


class TargetOutlet(Protocol):
    """Where targets go; each call returns at once."""

    def command(self, values: NDArray[np.float64]) -> None:
        """Send a target to the actuators, [num_joints]."""
        ...

    def target(self, decision: Decision, lateness_ns: int, stamp_ns: int) -> None:
        """Show a target, sent or not; the stamp is its deadline in ROS time."""
        ...


OnMode = Callable[[ArmState, int, str], None]
"""Takes who drives, since when (ROS time) and by which request; returns at once."""


class Actuation:
    """Chunk buffer, arming, decision and statistics of one tick.

    A target is decided a moment before its deadline and sent at it: a decision takes as long as
    caches and interpreter need, and the actuators would see that as jitter.

    `decide`, `send` and `finish` belong to the thread that ticks, or to one that runs while there
    is none; `restart`, `describe` and `reconfigure` to the owner's thread; `arming` has rules of
    its own.

    :param blend_s: longest fade from one chunk to the next.
    :param newest_state: returns the newest measured joints, however old.
    :param on_mode: told of the state at the start and of each change, by the thread behind it.
    :raises ValueError: the settings contradict each other.
    """

    def __init__(
        self,
        joints: Sequence[str],
        config: TickConfig,
        limits: JointLimits,
        blend_s: float,
        newest_state: Callable[[], RobotState | None],
        clock: RobotClock,
        outlet: TargetOutlet,
        on_mode: OnMode,
        log: Logger,
        faults: FaultLog,
    ) -> None:
        self.buffer = ChunkBuffer(
            config.num_joints, config.period_ns, round(blend_s * 1e9), deltas=config.deltas
        )
        self.arming = Arming()
        self.tick = ControlTick(config, limits, self.buffer, self.arming)
        self.statistics = TickStatistics(config.max_observation_age_ns)
        self.newest: Decision | None = None
        self.failure = ''  # of the newest tick that failed: the last line of its traceback
        self.problem = ''  # why a robot_description is not in force
        self._joints = joints
        self._newest_state = newest_state
        self._on_mode = on_mode
        self._clock = clock
        self._outlet = outlet
        self._log = log
        self._faults = faults
        self._given = (config, limits)  # by the parameters; a robot_description only tightens
        self._described: JointLimits | None = None
        self._decided: Decision | None = None  # not yet sent
        self.arming.on_change = self._on_change
        self._on_change(self.arming.state, 'configure')

    def _on_change(self, state: ArmState, request: str) -> None:
        try:
            self._on_mode(state, ros_now_ns(self._clock), request)
        except Exception as error:  # noqa: B902, BLE001 the change itself has been made
            self._faults.note('mode', error)

    # Life.

    def restart(self) -> int:
        """Forget targets, chunks and counts; return the epoch of the chunks to come."""
        self._decided = None
        self.statistics.reset()
        epoch = self.buffer.reset()
        self.tick.restart()
        return epoch

    def decide(self, deadline_ns: int, tick: int) -> None:
        """Decide one tick, to be sent by `send`; a tick that fails holds."""
        try:
            self._withdraw()
            self._decided = self.tick.decide(tick, deadline_ns, self._newest_state())
        except Exception as error:
            self.failure = traceback.format_exception_only(error)[-1].strip()
            self._faults.note('tick', error)
            # Without a target a robot in velocity mode would move on.
            self._decided = self.tick.hold(tick, deadline_ns, hold_reasons.ERROR)
            raise

    def send(self, deadline_ns: int, tick: int) -> None:
        """Send the target of a tick; decide it first where that is still to be done."""
        try:
            if self._decided is None or self.tick.is_outdated:
                self.decide(deadline_ns, tick)
        finally:
            decision, self._decided = self._decided, None
            if decision is not None:
                self._publish(decision)

    def finish(self, tick: int, reason: str) -> None:
        """Hold by a last target, once nothing ticks any more."""
        self._withdraw()
        self._publish(self.tick.hold(tick, self._clock.now_ns(), reason))

    def _withdraw(self) -> None:
        """Take back a decision that was never sent: its deadline was missed."""
        if self._decided is not None:
            self._decided = None
            self.tick.undo()

    def _publish(self, decision: Decision) -> None:
        """Send a target if armed, show it, and count it."""
        target = decision.target
        try:
            if decision.armed:
                self._outlet.command(target.values)
            lateness_ns = self._clock.now_ns() - target.deadline_ns
            stamp_ns = target.deadline_ns + self._clock.offset_ns()
            self._outlet.target(decision, lateness_ns, stamp_ns)
            self.statistics.record(
                target.tick,
                lateness_ns,
                hold_reason=target.hold_reason,
                armed=decision.armed,
                observation_age_ns=target.observation_age_ns,
            )
        except Exception as error:  # noqa: B902, BLE001 the next tick comes all the same
            self._faults.note('target', error)
        self.newest = decision

    # Settings.

    def describe(self, description: str) -> None:
        """Take a robot_description (URDF): its limits can only tighten those of the parameters.

        Where it cannot be read, the limits from before stay in force; without any the tick holds.
        """
        try:
            self._described = limits_of_description(description, self._joints)
        except ValueError as error:
            self._refuse(str(error))
            return
        self.reconfigure(*self._given)
        if not self.problem:
            self._log.info('limits of robot_description are in force')

    def reconfigure(self, config: TickConfig, limits: JointLimits) -> None:
        """Use other settings, with what the robot has described of itself.

        Where the two contradict each other, those from before stay in force.
        """
        self._given = (config, limits)
        try:
            if self._described is not None:
                config = replace(config, awaits_limits=False)
                limits = limits.tightened(self._described)
            self.tick.reconfigure(config, limits)
            self.problem = ''
        except ValueError as error:
            self._refuse(f'limits.{error}')
        self.statistics.max_observation_age_ns = config.max_observation_age_ns

    def _refuse(self, problem: str) -> None:
        self.problem = problem
        self._log.error(problem)
