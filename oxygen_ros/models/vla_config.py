# SPDX-License-Identifier: Apache-2.0
"""Sizes and conventions of a pi0.5, pi0 or SmolVLA model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..engine.spec import ModelSpec, PrefixScope, StateIn
from .layers import LayerShape
from .vision import VisionShape


class Family(str, Enum):
    """The architectures that load from a checkpoint."""

    PI05 = 'pi05'
    PI0 = 'pi0'
    SMOLVLA = 'smolvla'
    PALIGEMMA = 'paligemma'  # images and text alone, for comparison


_STATE_IN = {Family.PI0: StateIn.SUFFIX, Family.SMOLVLA: StateIn.PREFIX_TAIL}


@dataclass(frozen=True, slots=True)
class VLAConfig:
    """What a checkpoint's config says.

    :raises ValueError: names the field, what was expected and what came.
    """

    family: Family
    vision: VisionShape
    language: LayerShape
    expert: LayerShape
    num_layers: int
    vocab_size: int
    action_horizon: int
    padded_action_dim: int  # width of the action projections
    action_dim: int  # joints
    padded_state_dim: int
    state_dim: int  # joints
    max_prompt_tokens: int
    cameras: tuple[str, ...]  # the model's camera keys, in its order
    num_denoising_steps: int = 10
    min_period: float = 4e-3
    max_period: float = 4.0
    rope_base: float = 10_000.0
    max_positions: int = 8192

    def __post_init__(self) -> None:
        """Check what would fail late."""
        for name, most in (
            ('action_dim', self.padded_action_dim),
            ('state_dim', self.padded_state_dim),
        ):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f'{name}: expected 1 to {most}, got {getattr(self, name)}')
        for scope, shape in (('language', self.language), ('expert', self.expert)):
            if shape.head_dim % 2 or shape.width % 2:
                raise ValueError(
                    f'{scope}: expected even head_dim and width, got '
                    f'{shape.head_dim} and {shape.width}'
                )
        joint = ('num_heads', 'num_kv_heads', 'head_dim')
        if any(getattr(self.language, name) != getattr(self.expert, name) for name in joint):
            raise ValueError(
                'expert: expected heads and head_dim of the language model, got '
                f'{[getattr(self.expert, name) for name in joint]}'
            )
        if self.vision.image_px % self.vision.patch_px:
            raise ValueError(
                f'image size: expected a multiple of {self.vision.patch_px}, '
                f'got {self.vision.image_px}'
            )
        if self.vision.width % self.vision.num_heads:
            raise ValueError(
                f'vision heads: expected a divisor of {self.vision.width}, '
                f'got {self.vision.num_heads}'
            )
        if not self.cameras:
            raise ValueError('cameras: expected at least one, got none')

    @property
    def num_head_tokens(self) -> int:
        """Tokens of the state, run once a pass: pi0's in the expert, SmolVLA's in the language."""
        return int(self.family in _STATE_IN)

    def spec(self, action_dt_s: float, eos_token_ids: tuple[int, ...]) -> ModelSpec:
        """Return what the engine has to know.

        :param action_dt_s: seconds between two steps of a chunk.
        """
        return ModelSpec(
            name=self.family.value,
            num_layers=self.num_layers,
            num_heads=self.language.num_heads,
            num_kv_heads=self.language.num_kv_heads,
            head_dim=self.language.head_dim,
            width=self.language.width,
            vocab_size=self.vocab_size,
            tokens_per_image=self.vision.num_tokens,
            num_cameras=len(self.cameras),
            action_horizon=self.action_horizon,
            action_dim=self.action_dim,
            action_dt_s=action_dt_s,
            action_suffix_tokens=self.action_horizon + self.num_head_tokens,
            action_causal=self.family is Family.SMOLVLA,
            num_denoising_steps=self.num_denoising_steps,
            max_action_prompt_tokens=0,
            max_prefix_prompt_tokens=self.max_prompt_tokens,
            prefix_scope=PrefixScope.OBSERVATION_PROMPT,
            state_in=_STATE_IN.get(self.family, StateIn.PROMPT),
            eos_token_ids=eos_token_ids,
            action_head_tokens=self.num_head_tokens,
        )
