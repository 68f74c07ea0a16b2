# SPDX-License-Identifier: Apache-2.0
"""One dialogue goal as the server keeps it, and the counts of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import math
from typing import Any

from rclpy.action.server import ServerGoalHandle
from rclpy.task import Future

from ...memory.episodes.recall import Recollection
from ...types import SamplingParams, TextResult
from .utterances import UtteranceStream


@dataclass(slots=True, eq=False)
class Goal:
    """One goal from acceptance to its end."""

    handle: ServerGoalHandle[Any, Any, Any]
    done: Future[TextResult]
    accepted_ns: int
    sampling: SamplingParams | None = None
    request_id: int | None = None  # None: waiting for its turn
    text: str = ''
    num_tokens: int = 0
    told_tokens: int = 0  # of the newest feedback
    recollection: Recollection = field(default_factory=lambda: Recollection(''))
    verdict: str = ''  # what the facts say of the answer
    reasons: Sequence[str] = ()  # and of each sentence, with the source
    utterances: UtteranceStream = field(default_factory=UtteranceStream)


@dataclass(slots=True)
class DialogueCounts:
    """What became of the goals since the node was made."""

    accepted: int = 0
    succeeded: int = 0
    cancelled: int = 0
    aborted: int = 0
    refused: int = 0  # of those aborted: never begun
    newest_ttft_s: float = math.nan
