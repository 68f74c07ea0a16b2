# SPDX-License-Identifier: Apache-2.0
"""What a replay is told, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
import math

from ..robot.settings import RobotSettings


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A question at a fixed time of the recording.

    :raises ValueError: the time or the text cannot be meant.
    """

    time_s: float  # since the start of the replay
    text: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_s) and self.time_s >= 0.0):
            raise ValueError(f'question: expected a time of at least 0 s, got {self.time_s:g}')
        if not self.text.strip():
            raise ValueError('question: expected a text, got none')


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """All settings of a replay in process; those of the robot have the node's meaning.

    :raises ValueError: names the field, what was expected and what came.
    """

    robot: RobotSettings
    parameters: Mapping[str, object]  # that `robot` was made of, for the audit log
    questions: tuple[TimedQuestion, ...] = field(default=())
    start_s: float = 0.0  # where in the recording to begin
    duration_s: float | None = None  # of the recording; None: to its end

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start_s) and self.start_s >= 0.0):
            raise ValueError(f'start: expected at least 0 s, got {self.start_s:g}')
        if self.duration_s is not None and not self.duration_s > 0.0:
            raise ValueError(f'duration: expected above 0 s, got {self.duration_s:g}')
