# SPDX-License-Identifier: Apache-2.0
"""What a shell around a robot hands in: clocks, a log, writer and reader, and where results go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..control import ArmState, Decision
from ..engine.clock import WorkClock
from ..engine.scheduling.cost_model import CostModel
from ..types import ActionChunk, SceneUpdate, TextResult
from .clock import RobotClock
from .faults import FaultLog, Logger
from .positions import CameraPoses
from .records import MakeWriter, StoreReader


class Outlets:
    """What leaves a robot; override what matters. Each call returns at once.

    `command` and `target` are called by the thread that ticks, `mode` by that of the request, the
    others by the owner's.
    """

    def command(self, values: NDArray[np.float64]) -> None:
        """Send a target to the actuators, [num_joints]."""

    def target(self, decision: Decision, lateness_ns: int, stamp_ns: int) -> None:
        """Show a target, sent or not; the stamp is its deadline in ROS time."""

    def mode(self, state: ArmState, stamp_ns: int, request: str) -> None:
        """Report who drives, since when (ROS time), and the request behind it."""

    def chunk(self, chunk: ActionChunk) -> None:
        """Show an action chunk."""

    def text(self, result: TextResult) -> None:
        """Take the end of a text request, of dialogue or scene graph."""

    def utterance(self, sentence: str) -> None:
        """Speak a sentence of an answer."""

    def scene(self, update: SceneUpdate, verdicts: Mapping[int, str]) -> None:
        """Show the scene graph, and what the facts say of its objects, by id."""


CallSoon = Callable[[Callable[[], None]], None]
"""Has a call made in the owner's thread; any thread may ask."""


@dataclass(frozen=True, slots=True)
class Shell:
    """All that a robot is given beside its settings and its model.

    :param work_clock: of the engine.
    :param wake: asks the owner to call `Robot.drain` soon; any thread calls it.
    :param wake_engine: ends the engine's idle wait; any thread calls it.
    :param wake_ingest: asks for `CameraInputs.decode_newest`; the owner's thread calls it.
    :param make_writer: makes what writes a run's notes and audit records.
    :param make_reader: makes what reads a store file.
    :param poses: of the cameras, where positions are asked for.
    """

    clock: RobotClock
    work_clock: WorkClock
    cost_model: CostModel
    outlets: Outlets
    log: Logger
    faults: FaultLog
    wake: Callable[[], None]
    wake_engine: Callable[[], None]
    wake_ingest: Callable[[], None]
    make_writer: MakeWriter
    make_reader: Callable[[str, CallSoon], StoreReader]
    poses: CameraPoses | None = None
