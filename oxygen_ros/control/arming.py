# SPDX-License-Identifier: Apache-2.0
"""Who drives the robot: the state machine behind enable, hold, stop and takeover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class ArmState(str, Enum):
    """What happens to the targets; a node starts disarmed."""

    DISARMED = 'disarmed'  # shown, not sent
    ARMED = 'armed'  # sent
    HOLDING = 'holding'  # the last one is sent until enabled again
    STOPPED = 'stopped'  # likewise, until disarmed and enabled again
    TAKEOVER = 'takeover'  # an operator drives; nothing is sent


class ArmView(NamedTuple):
    """One consistent reading."""

    state: ArmState
    sending: bool  # targets go to the actuators
    generation: int  # another number: start again from the measured joints


@dataclass(frozen=True, slots=True)
class ArmReply:
    """Outcome of a request, in the form of a Trigger or SetBool response."""

    success: bool
    message: str


class Arming:
    """The state machine.

    | from \\ request | enable    | disarm   | hold    | stop    | takeover |
    | --------------- | --------- | -------- | ------- | ------- | -------- |
    | disarmed        | armed     | disarmed | refused | stopped | takeover |
    | armed           | armed     | disarmed | holding | stopped | takeover |
    | holding         | armed     | disarmed | holding | stopped | takeover |
    | stopped         | refused   | disarmed | refused | stopped | refused  |
    | takeover        | armed     | disarmed | holding | stopped | takeover |

    Any thread may call `view` and `stop`; the other requests come from one thread at a time. A
    stop is a latch of its own, so that no request that runs beside it can undo it.

    `on_change` takes each new state and the request behind it, in order; it is called by the
    thread of the request and must return at once.
    """

    def __init__(self) -> None:
        """Start disarmed."""
        self.on_change: Callable[[ArmState, str], None] = lambda state, request: None
        self._stopped = False
        self._base = ArmView(ArmState.DISARMED, False, 0)  # replaced as a whole, never changed

    @property
    def state(self) -> ArmState:
        """The present state."""
        return self.view().state

    def view(self) -> ArmView:
        """Return state, whether targets are sent, and the generation, all of one moment."""
        base = self._base
        if self._stopped:
            # What was being sent is kept in place; where nothing was sent, nothing starts now.
            return ArmView(ArmState.STOPPED, base.sending, base.generation)
        return base

    def enable(self) -> ArmReply:
        """Send targets from now on, starting from the measured joints."""
        if self._stopped:
            return ArmReply(False, 'stopped: disarm first, then enable')
        if self._base.state is ArmState.ARMED:
            return ArmReply(True, 'already armed')
        self._enter(ArmState.ARMED, 'enable', sending=True, restart=True)
        return ArmReply(True, 'armed')

    def disarm(self) -> ArmReply:
        """Send nothing from now on, and lift a stop."""
        before = self.state
        if self._base.state is not ArmState.DISARMED:
            self._base = ArmView(ArmState.DISARMED, False, self._base.generation + 1)
        self._stopped = False  # last, so that nothing is sent in between
        if before is not ArmState.DISARMED:
            self.on_change(ArmState.DISARMED, 'disarm')
        return ArmReply(True, 'disarmed')

    def hold(self) -> ArmReply:
        """Keep sending the last target until enabled again."""
        if self._stopped:
            return ArmReply(False, 'stopped: already holding')
        state = self._base.state
        if state is ArmState.DISARMED:
            return ArmReply(False, 'disarmed: nothing to hold')
        if state is not ArmState.HOLDING:
            # From takeover the last target of ours is old: hold where the operator left it.
            self._enter(ArmState.HOLDING, 'hold', sending=True, restart=state is ArmState.TAKEOVER)
        return ArmReply(True, 'holding')

    def stop(self) -> ArmReply:
        """Hold at once and refuse to be enabled until disarmed."""
        before, self._stopped = self._stopped, True
        if not before:
            self.on_change(ArmState.STOPPED, 'stop')
        return ArmReply(True, 'stopped')

    def takeover(self) -> ArmReply:
        """Leave the robot to an operator: send nothing until enabled again."""
        if self._stopped:
            return ArmReply(False, 'stopped: disarm first')
        if self._base.state is not ArmState.TAKEOVER:
            self._enter(ArmState.TAKEOVER, 'takeover', sending=False, restart=True)
        return ArmReply(True, 'takeover')

    def _enter(self, state: ArmState, request: str, *, sending: bool, restart: bool) -> None:
        self._base = ArmView(state, sending, self._base.generation + int(restart))
        self.on_change(state, request)
