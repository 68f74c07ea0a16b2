# SPDX-License-Identifier: Apache-2.0
"""Settings of the engine: frozen, checked once; no torch.

The baselines of the benchmark are settings too, not other code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ..setting import check, parameter, part, refusal, setting
from ..types import CONTROL_RATE_HZ


class Sharing(str, Enum):
    """Who reads a prefix."""

    SHARED = 'shared'  # every task, the same pages
    ISOLATED = 'isolated'  # its own task alone: the baseline with a copy for each task


@dataclass(frozen=True, slots=True)
class KVConfig:
    """Sizes of the pool and rules of sharing.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'kv'

    sharing: Sharing | str = setting(
        Sharing.SHARED,
        'Who reads a prefix: every task, or its own task alone',
        name='baseline.kv_sharing',
    )
    # Small, so that little of a last block stays unused.
    block_size: int = setting(8, 'Size of a KV block', 'tokens', low=1, high=1024)
    # Slots: one being built, the newest, the others pinned by text.
    max_live_prefixes: int = setting(4, 'Prefixes in memory at the same time', low=2, high=64)
    num_text_blocks: int = setting(256, 'Blocks for text', low=1, high=1_000_000)
    text_prefix_max_age_s: float = setting(
        0.5, 'A new text request joins a pinned prefix younger than this', 's', low=0.0, high=60.0
    )
    reserved_action_contexts: int = 2  # the one in use, and the next one's prompt being prefilled

    def __post_init__(self) -> None:
        check(self)
        if self.reserved_action_contexts < 2:
            raise ValueError(
                'reserved_action_contexts: expected at least 2, '
                f'got {self.reserved_action_contexts}'
            )


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """Times of the policy.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'scheduler'

    micro_slice_s: float = setting(
        0.0035, 'Longest slice of best-effort work', 's', low=1e-9, high=1.0
    )
    safety_threshold_s: float = setting(
        0.0025,
        'No slice starts if less time is left before an action is due',
        's',
        low=0.0,
        high=1.0,
    )
    dialogue_patience_s: float = setting(
        0.03, 'Dialogue work that has waited longer goes first', 's', low=0.001, high=60.0
    )
    scene_graph_patience_s: float = setting(
        0.03, 'Scene-graph work that has waited longer goes first', 's', low=0.001, high=60.0
    )
    oversize_patience: int = setting(
        3,
        'Cycles after which a unit longer than any cycle runs anyway',
        low=1,
        high=1000,
    )

    def __post_init__(self) -> None:
        check(self)


class ActionMode(str, Enum):
    """When a pass is made."""

    PER_TICK = 'per_tick'  # each period, when the state or the prefix is new
    CHUNKED = 'chunked'  # when the prefix is new, or every `chunk_periods` periods


@dataclass(frozen=True, slots=True)
class ActionConfig:
    """When action passes are due.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'action'

    mode: ActionMode = setting(
        ActionMode.PER_TICK,
        'When an action pass runs: at each new state or prefix, or at each new prefix and every '
        'chunk_periods',
    )
    period_s: float = 1.0 / CONTROL_RATE_HZ  # grid on which a pass may be due
    chunk_periods: int = setting(
        8,
        'Ticks after which a chunked pass runs on an old prefix too',
        low=1,
        high=1_000_000_000,
    )

    def __post_init__(self) -> None:
        check(self)
        if not self.period_s > 0.0:
            raise ValueError(f'period_s: expected above 0, got {self.period_s}')


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

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'engine'

    kv: KVConfig = part(KVConfig)
    scheduler: SchedulerConfig = part(SchedulerConfig)
    action: ActionConfig = part(ActionConfig)
    policy: Policy = setting(
        Policy.PRIORITY_SLICING, 'Order of best-effort work', name='baseline.scheduler_policy'
    )
    batching: Batching = setting(
        Batching.CROSS_FRAME, 'Which text requests share a decode step', name='baseline.batching'
    )
    # One row at a time.
    deterministic: bool = setting(
        False, 'Bit-identical results, independent of other live requests'
    )
    attention_backend: str = setting('sdpa', 'Attention backend', choices=('reference', 'sdpa'))
    jump_forward: bool = setting(
        True,
        'Take tokens that the grammar of a scene graph forces without sampling, several in one '
        'step',
    )
    reuse_vision: bool = setting(True, 'Reuse the vision features of an unchanged image')
    observation_period_s: float = setting(
        0.1, 'Minimum time between two observations', 's', low=0.0, high=60.0
    )
    max_text_requests: int = setting(
        64, 'Live text requests; more are refused', low=1, high=10_000
    )
    max_admitted: int = setting(
        16, 'Text requests that may hold a prefix at the same time', low=1, high=1000
    )
    max_decode_batch: int = setting(16, 'Most requests in one decode step', low=1, high=1000)
    max_text_tokens: int = setting(
        512,
        'Most tokens of one request, prompt and answer together',
        'tokens',
        low=1,
        high=1_000_000,
    )
    place_queries: int = setting(
        16,
        'Query vectors of the dense read that computes the place embedding of an update; 0: none',
        low=0,
        high=256,
        name='memory.place_queries',
    )
    seed: int = setting(0, 'Seed of the action noise', low=0)
    hash_inputs: bool = False  # take the hash of what each shared prefix is computed from

    def __post_init__(self) -> None:
        check(self)
        if self.place_queries > self.max_text_tokens:
            most = parameter(EngineConfig, 'max_text_tokens')
            raise refusal(self, 'place_queries', f'at most {most} ({self.max_text_tokens})')

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
