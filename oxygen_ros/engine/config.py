# SPDX-License-Identifier: Apache-2.0
"""Settings of the engine: frozen, checked once.

The baselines of the benchmark are settings too, not other code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from .action_runner import ActionConfig
from .kv.manager import KVConfig
from .scheduling.scheduler import SchedulerConfig


class Policy(str, Enum):
    """How work is ordered."""

    PRIORITY_SLICING = 'priority_slicing'  # actions first, text in slices that yield
    FIFO = 'fifo'  # in order of arrival, each run to completion


class Batching(str, Enum):
    """Which text requests share a decode step."""

    CROSS_FRAME = 'cross_frame'  # all live ones, whatever frame they began on
    NONE = 'none'  # one at a time


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """All settings of an engine.

    :raises ValueError: names the field, what was expected and what came.
    """

    kv: KVConfig = field(default_factory=KVConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    action: ActionConfig = field(default_factory=ActionConfig)
    policy: Policy = Policy.PRIORITY_SLICING
    batching: Batching = Batching.CROSS_FRAME
    deterministic: bool = False  # decode one row at a time: bit-identical whatever else is live
    jump_forward: bool = True  # tokens that a grammar forces are not sampled one by one
    attention_backend: str = 'sdpa'
    reuse_vision: bool = True
    observation_period_s: float = 0.1  # shortest time between two observations
    max_text_requests: int = 64  # live ones; more are refused
    max_admitted: int = 16  # text requests that hold a prefix at one time
    max_decode_batch: int = 16  # rows of a decode step
    max_text_tokens: int = 512  # prompt and answer of one request together
    place_queries: int = 0  # vectors of a scene graph's dense read of its prefix; 0: no read
    hash_inputs: bool = False  # take the hash of what each shared prefix is computed from
    seed: int = 0  # of the action noise

    def __post_init__(self) -> None:
        for name in ('max_text_requests', 'max_admitted', 'max_decode_batch', 'max_text_tokens'):
            if getattr(self, name) < 1:
                raise ValueError(f'{name}: expected at least 1, got {getattr(self, name)}')
        if not 0 <= self.place_queries <= self.max_text_tokens:
            raise ValueError(
                f'place_queries: expected 0 to max_text_tokens '
                f'({self.max_text_tokens}), got {self.place_queries}'
            )
        if not self.observation_period_s >= 0.0:
            raise ValueError(
                f'observation_period_s: expected at least 0, got {self.observation_period_s}'
            )

    @property
    def decode_batch(self) -> int:
        """Rows of a decode step as in force.

        One row at a time makes a request's arithmetic independent of who else is live: a fixed
        batch of one.
        """
        alone = self.deterministic or self.batching is Batching.NONE
        return 1 if alone else self.max_decode_batch

    @property
    def run_to_completion(self) -> bool:
        return self.policy is Policy.FIFO
