# SPDX-License-Identifier: Apache-2.0
"""What a replay is told, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
import math
from typing import Any

from ..ingest import IngestRules
from ..memory.scene.scene_grammar import SceneFormat
from ..memory.scene.scene_graph import GraphRules
from ..runtime.runtime import RuntimeConfig


@dataclass(frozen=True, slots=True)
class Question:
    """A dialogue request at a fixed time of the recording.

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
class SceneSettings:
    """How the scene is looked at."""

    period_s: float  # 0: never
    prompt: str
    scene_format: SceneFormat
    rules: GraphRules


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """All settings of a replay in process; those of the node have the node's meaning.

    :raises ValueError: names the field, what was expected and what came.
    """

    joints: tuple[str, ...]
    runtime: RuntimeConfig
    scene: SceneSettings
    model_name: str
    model_options: dict[str, Any]
    max_answer_tokens: int
    ingest: IngestRules
    num_threads: int = 1  # of torch; the last digits of sums depend on it
    questions: tuple[Question, ...] = field(default=())
    start_s: float = 0.0  # where in the recording to begin
    duration_s: float | None = None  # of the recording; None: to its end

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start_s) and self.start_s >= 0.0):
            raise ValueError(f'start: expected at least 0 s, got {self.start_s:g}')
        if self.duration_s is not None and not self.duration_s > 0.0:
            raise ValueError(f'duration: expected above 0 s, got {self.duration_s:g}')
