# SPDX-License-Identifier: Apache-2.0
"""The tick with all that it needs: chunk buffer, arming, decision, thread, real-time settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import time

from ..control import hold_reasons
from ..control.arming import Arming
from ..control.chunk_buffer import ChunkBuffer
from ..control.limits import JointLimits
from ..control.realtime import apply_to_process, RealtimeSettings, release_process
from ..control.realtime_report import RealtimeReport
from ..control.tick import ControlTick, Decision
from ..control.tick_config import TickConfig
from ..robot.tick_settings import TickSettings
from ..setting import shared
from ..types import RobotState
from .tick_thread import TickThread


@dataclass(frozen=True, slots=True)
class TickLoopConfig:
    """All settings of the tick."""

    tick: TickConfig
    limits: JointLimits
    blend_s: float = shared(TickSettings, 'blend_s')
    realtime: RealtimeSettings | None = None  # of the process and of the tick's thread


class TickLoop:
    """The same in the engine's process and in one of its own.

    A target is decided a moment before its deadline and given out at it: a decision takes as long
    as caches and interpreter have it, and the actuators would see that as jitter.

    `prepare`, `start` and `stop` belong to one thread, `decide` and `send` to the one that ticks.

    :param on_target: takes (decision, lateness in ns) of each tick; must return at once.
    :param newest_state: returns the newest measured joints, however old.
    """

    def __init__(
        self,
        config: TickLoopConfig,
        on_target: Callable[[Decision, int], None],
        newest_state: Callable[[], RobotState | None],
    ) -> None:
        self.realtime_report = RealtimeReport()
        self.buffer = ChunkBuffer(
            config.tick.num_joints,
            config.tick.period_ns,
            round(config.blend_s * 1e9),
            deltas=config.tick.deltas,
        )
        self.arming = Arming()
        self.tick = ControlTick(config.tick, config.limits, self.buffer, self.arming)
        self._period_ns = config.tick.period_ns
        self._realtime = config.realtime
        self._on_target = on_target
        self._newest_state = newest_state
        self._thread: TickThread | None = None
        self._decided: Decision | None = None  # not yet given out

    @property
    def thread(self) -> TickThread | None:
        """The tick's thread while it runs."""
        return self._thread

    def prepare(self) -> int:
        """Forget targets and chunks and apply what concerns the whole process.

        Before the first deadline is set, since this outlasts a tick.

        :return: the epoch of the chunks to come.
        """
        self._decided = None
        epoch = self.buffer.reset()
        self.tick.restart()
        if self._realtime is not None:
            self.realtime_report = apply_to_process(self._realtime)
        return epoch

    def start(self, first_ns: int) -> None:
        """Start the thread.

        :param first_ns: the first deadline on the steady clock.
        """
        ahead_ns = self.tick.config.decide_ahead_ns
        self._thread = TickThread(
            self._period_ns * 1e-9,
            self.send,
            ahead=self.decide if ahead_ns else None,
            ahead_ns=ahead_ns,
            realtime=self._realtime,
        )
        self._thread.start(first_ns)
        self.realtime_report = RealtimeReport(
            (*self.realtime_report.items, *self._thread.realtime_report.items)
        )

    def decide(self, deadline_ns: int, tick: int) -> None:
        """Decide one tick, to be given out by `send`; a tick that fails holds."""
        self._withdraw()
        try:
            self._decided = self.tick.decide(tick, deadline_ns, self._newest_state())
        except Exception:
            # Without a target a robot in velocity mode would move on.
            self._decided = self.tick.hold(tick, deadline_ns, hold_reasons.ERROR)
            raise

    def send(self, deadline_ns: int, tick: int) -> None:
        """Give out the target of a tick; decide it first where that is still to be done."""
        try:
            if self._decided is None or self.tick.is_outdated:
                self.decide(deadline_ns, tick)
        finally:
            decision, self._decided = self._decided, None
            if decision is not None:
                self._on_target(decision, time.monotonic_ns() - deadline_ns)

    def _withdraw(self) -> None:
        """Take back a decision that was never given out: its deadline was missed."""
        if self._decided is not None:
            self._decided = None
            self.tick.undo()

    def stop(self, reason: str, timeout_s: float = 1.0) -> bool:
        """Stop the thread and hold by a last target; nothing happens where none runs.

        :param timeout_s: how long to wait for the present tick.
        :return: False: the thread did not end in time.
        """
        if self._thread is None:
            return True
        thread, self._thread = self._thread, None
        stopped = thread.stop(timeout_s)
        self._withdraw()
        self._on_target(
            self.tick.hold(thread.num_ticks + thread.num_overruns, time.monotonic_ns(), reason), 0
        )
        return stopped

    def release(self) -> None:
        """Take back what was applied to the whole process, once all is stopped."""
        if self._realtime is not None:
            release_process(self._realtime)
