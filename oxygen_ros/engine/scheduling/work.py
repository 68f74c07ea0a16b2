# SPDX-License-Identifier: Apache-2.0
"""Sliceable work: may be stopped after any unit and continued with nothing recomputed.

A unit is the smallest piece that runs without a look at the clock: one camera through the vision
tower, one layer of a prefill or of the batched decode step, the output head with sampling. Between
units all state lies in the work object (hidden state and layer index) and in the K/V pages, so a
suspended work resumes from there.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple, Protocol


class Rank(IntEnum):
    """Order of best-effort work: the smaller, the sooner."""

    PREFIX = 0  # a new observation
    DIALOGUE = 1
    SCENE_GRAPH = 2


class UnitKind(str, Enum):
    """What a unit does; costs are estimated per kind and size."""

    HASH = 'hash'  # a piece of an image into the hash of the prefix
    INGEST = 'ingest'  # one image to the model's input
    VISION = 'vision'  # one camera through the vision tower
    PREFILL = 'prefill'  # one layer of a prefix
    WRITE_KV = 'write_kv'  # K/V of the last layer of tokens whose output nobody reads
    ACTION_PROMPT = 'action_prompt'  # one layer of the action's private prompt
    TEXT_PREFILL = 'text_prefill'  # one layer of a text request's private prompt
    DECODE = 'decode'  # one layer of the batched decode step
    HEAD = 'head'  # output head and sampling
    DENOISE = 'denoise'  # one Euler step of the action pass
    DENSE_READ = 'dense_read'  # one layer of the query vectors that read a prefix


class UnitKey(NamedTuple):
    """Kind and size (tokens or rows) of a unit: units of one key cost alike."""

    kind: UnitKind
    size: int


class Work(Protocol):
    """Something sliceable.

    Only the thread that owns the engine calls it.
    """

    @property
    def rank(self) -> Rank:
        """Where it stands in the order of best-effort work."""
        ...

    @property
    def arrived_ns(self) -> int:
        """When its observation or its request came (steady clock)."""
        ...

    def next_unit(self) -> UnitKey | None:
        """Key of the next unit; None: done, nothing left to run."""
        ...

    def run_unit(self) -> None:
        """Run the next unit."""
        ...
