# SPDX-License-Identifier: Apache-2.0
"""A text request: everything that one dialogue or scene-graph task is, between two slices."""

from __future__ import annotations

from enum import Enum

from ...types import FloatArray, SamplingParams, TaskType
from ..kv.context import Context
from ..scheduling.work import Rank
from .constraint import TokenConstraint
from .text_stream import TextStream

_RANK_OF_TASK = {TaskType.DIALOGUE: Rank.DIALOGUE, TaskType.SCENE_GRAPH: Rank.SCENE_GRAPH}


class RequestState(Enum):
    """Where a request stands; it leaves the engine by exactly one TextResult."""

    WAITING = 'waiting'  # for a prefix slot or for blocks; also after it gave its blocks back
    READ = 'read'  # its query vectors read the prefix
    PREFILL = 'prefill'  # its private prompt is being prefilled
    DECODE = 'decode'  # it takes part in decode steps
    FINISHED = 'finished'


class TextRequest:
    """One text request.

    `context` pins the prefix from admission to the end; its own blocks come and go with `state`.
    """

    def __init__(
        self,
        request_id: int,
        task: TaskType,
        prompt_tokens: tuple[int, ...],
        sampling: SamplingParams,
        constraint: TokenConstraint | None,
        submitted_ns: int,
    ) -> None:
        self.request_id = request_id
        self.task = task
        self.rank = _RANK_OF_TASK[task]
        self.prompt_tokens = prompt_tokens
        self.sampling = sampling
        self.constraint = constraint
        self.submitted_ns = submitted_ns
        self.state = RequestState.WAITING
        self.paused = False  # keeps its pages and its place; nothing of it is computed
        self.context: Context | None = None
        self.tokens: list[int] = []
        self.stream = TextStream(sampling.stop)
        self.place: FloatArray | None = None  # [width], what the dense read gave
        self.first_token_ns: int | None = None
        self.last_step_ns = submitted_ns  # when it last took part in a decode step
        # Tokens of its longest prefill so far; prefilled again they count as recomputed
        self.num_prefilled = 0

    @property
    def prefill_tokens(self) -> tuple[int, ...]:
        """Tokens whose K/V must stand before the next: the prompt, after a preemption the text."""
        return (*self.prompt_tokens, *self.tokens)

    @property
    def num_pending(self) -> int:
        """Newest tokens whose K/V do not stand yet: one, and what its grammar forced after it."""
        assert self.context is not None
        return len(self.prompt_tokens) + len(self.tokens) - self.context.num_tokens

    @property
    def max_tokens(self) -> int:
        """Own K/V rows that it may need in the end."""
        return len(self.prompt_tokens) + self.sampling.max_tokens
