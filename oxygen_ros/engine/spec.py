# SPDX-License-Identifier: Apache-2.0
"""What the engine has to know of a model: sizes, what its prefix holds, where its state goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class PrefixScope(str, Enum):
    """What the shared prefix holds."""

    OBSERVATION = 'observation'  # images only; each task's own prompt follows causally
    OBSERVATION_PROMPT = 'observation+prompt'  # images and instruction, one bidirectional block


class StateIn(str, Enum):
    """Where the robot's state enters the model."""

    PROMPT = 'prompt'  # text inside the prefix: a new state means a new prefill
    PREFIX_TAIL = 'prefix_tail'  # a token of the language expert, private, in every action pass
    SUFFIX = 'suffix'  # in every action pass


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Sizes and conventions of a model, fixed at load.

    :raises ValueError: names the field, what was expected and what came.
    """

    name: str
    num_layers: int
    num_heads: int  # query heads
    num_kv_heads: int
    head_dim: int
    width: int
    vocab_size: int
    tokens_per_image: int
    num_cameras: int  # the most it takes
    action_horizon: int
    action_dim: int
    action_dt_s: float  # seconds between two steps of a chunk
    action_suffix_tokens: int  # K/V rows of a pass: horizon, and a state token if any
    action_causal: bool  # attention among the suffix tokens
    num_denoising_steps: int
    max_action_prompt_tokens: int  # private prompt of the action; 0 where it is part of the prefix
    max_prefix_prompt_tokens: int  # prompt inside the prefix; 0 where each task has its own
    prefix_scope: PrefixScope
    state_in: StateIn
    eos_token_ids: tuple[int, ...]
    # Of the suffix's rows: those that see no later one, so that a pass writes them once before its
    # steps.
    action_head_tokens: int = 0

    def __post_init__(self) -> None:
        for name in (
            'num_layers',
            'num_heads',
            'num_kv_heads',
            'head_dim',
            'width',
            'vocab_size',
            'tokens_per_image',
            'num_cameras',
            'action_horizon',
            'action_dim',
            'action_suffix_tokens',
            'num_denoising_steps',
        ):
            value = getattr(self, name)
            if value < 1:
                raise ValueError(f'{name}: expected at least 1, got {value}')
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f'num_kv_heads: expected a divisor of num_heads ({self.num_heads}), '
                f'got {self.num_kv_heads}'
            )
        if not 0 <= self.action_head_tokens < self.action_suffix_tokens:
            raise ValueError(
                f'action_head_tokens: expected 0 to {self.action_suffix_tokens - 1}, '
                f'got {self.action_head_tokens}'
            )
        if not self.action_dt_s > 0.0:
            raise ValueError(f'action_dt_s: expected above 0, got {self.action_dt_s}')

    @property
    def max_prefix_tokens(self) -> int:
        return self.num_cameras * self.tokens_per_image + self.max_prefix_prompt_tokens

    @property
    def is_state_fresh(self) -> bool:
        """Whether each action pass takes the newest state, and not that of the prefix."""
        return self.state_in is not StateIn.PROMPT

    @property
    def max_action_tokens(self) -> int:
        """Private K/V rows of an action: its own prompt and its suffix."""
        return self.max_action_prompt_tokens + self.action_suffix_tokens

    def kv_bytes_per_token(self, element_bytes: int = 4) -> int:
        return self.num_layers * 2 * self.num_kv_heads * self.head_dim * element_bytes
