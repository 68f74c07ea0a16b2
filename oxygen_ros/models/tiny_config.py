# SPDX-License-Identifier: Apache-2.0
"""Sizes and choices of the tiny model."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.spec import ModelSpec, PrefixScope, StateIn
from .layers import LayerShape
from .vision import VisionShape


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Sizes and choices of the tiny model; the defaults run beside a 50 Hz loop on one CPU core.

    :raises ValueError: names the field, what was expected and what came.
    """

    num_cameras: int = 3
    image_px: int = 112  # side of the vision tower's input; (image_px / 14) ** 2 tokens a camera
    action_dim: int = 7  # joints
    action_dt_s: float = 0.02
    prefix_scope: PrefixScope = PrefixScope.OBSERVATION
    num_kv_heads: int = 1
    num_denoising_steps: int = 5
    seed: int = 0  # of the weights
    action_horizon: int = 16
    action_scale: float = 0.1  # largest distance of a target from the measured joint, SI units
    max_prompt_tokens: int = 32  # of the instruction, <bos> included
    max_positions: int = 8192
    num_layers: int = 4
    num_heads: int = 4
    head_dim: int = 32
    width: int = 128
    mlp_width: int = 256
    expert_width: int = 64
    expert_mlp_width: int = 128
    vocab_size: int = 264

    def __post_init__(self) -> None:
        """Check what the engine's ModelSpec does not."""
        if not 1 <= self.num_cameras <= 4:
            raise ValueError(f'num_cameras: expected 1 to 4, got {self.num_cameras}')
        if self.image_px < 14 or self.image_px % 14:
            raise ValueError(f'image_px: expected a multiple of 14, got {self.image_px}')
        if self.num_kv_heads < 1 or self.num_heads % self.num_kv_heads:
            raise ValueError(
                f'num_kv_heads: expected a divisor of {self.num_heads}, got {self.num_kv_heads}'
            )

    @property
    def language(self) -> LayerShape:
        """Layers of the language expert."""
        return LayerShape(
            self.width, self.mlp_width, self.num_heads, self.num_kv_heads, self.head_dim
        )

    @property
    def expert(self) -> LayerShape:
        """Layers of the action expert."""
        return LayerShape(
            self.expert_width,
            self.expert_mlp_width,
            self.num_heads,
            self.num_kv_heads,
            self.head_dim,
        )

    @property
    def vision(self) -> VisionShape:
        """Vision tower: patches of 14 px, so 64 tokens a camera at 112 px."""
        return VisionShape(
            image_px=self.image_px,
            patch_px=14,
            width=96,
            mlp_width=192,
            num_layers=2,
            num_heads=3,
            output_width=self.width,
        )

    def spec(self, eos_id: int) -> ModelSpec:
        """Return what the engine has to know."""
        shared_prompt = self.prefix_scope is PrefixScope.OBSERVATION_PROMPT
        return ModelSpec(
            name='tiny',
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            width=self.width,
            vocab_size=self.vocab_size,
            tokens_per_image=self.vision.num_tokens,
            num_cameras=self.num_cameras,
            action_horizon=self.action_horizon,
            action_dim=self.action_dim,
            action_dt_s=self.action_dt_s,
            action_suffix_tokens=1 + self.action_horizon,
            action_causal=False,
            num_denoising_steps=self.num_denoising_steps,
            max_action_prompt_tokens=0 if shared_prompt else self.max_prompt_tokens,
            max_prefix_prompt_tokens=self.max_prompt_tokens if shared_prompt else 0,
            prefix_scope=self.prefix_scope,
            state_in=StateIn.SUFFIX,
            eos_token_ids=(eos_id,),
        )
