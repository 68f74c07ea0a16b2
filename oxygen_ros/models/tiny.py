# SPDX-License-Identifier: Apache-2.0
"""The project's own small MoT VLA: pi0.5's maths at 1.2 million parameters, state in the suffix.

Sequence of an action pass: [prefix][instruction, where it is private][state, action 0 .. 15], the
last part one bidirectional block of the action expert at consecutive positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..engine.model import ActionPass, Attend, PrefixKV
from ..engine.spec import PrefixScope
from ..types import CameraFrame, FloatArray
from .action_expert import ActionExpert
from .images import resize_with_padding, to_unit_range
from .language_expert import LanguageExpert
from .layers import Rope, RopeRows
from .tiny_config import TinyConfig
from .tiny_weights import tiny_weights
from .tokenizer import ByteLevelTokenizer, resource_path
from .vision import VisionTower
from .weights import WeightReader, weights_checksum


@dataclass(slots=True)
class TinyActionPass:
    """One action pass between two denoising steps."""

    num_steps: int
    actions: Tensor  # [action_horizon, action_dim] float32, noisy until the last step
    state_token: Tensor  # [1, expert_width]
    rope: RopeRows  # of the suffix
    state: FloatArray  # [action_dim], zeros where none was given
    velocity: Tensor | None = None  # of the last step taken


class TinyModel:
    """A `VLAModel`; its weights are random, so its targets and words mean nothing.

    Only the thread that owns the engine may call it. It keeps nothing between calls.
    """

    def __init__(
        self,
        config: TinyConfig,
        device: torch.device | str = 'cpu',
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Draw the weights and fuse them.

        :raises ValueError: from the config, naming the field.
        """
        self.config = config
        self.device, self.dtype = torch.device(device), dtype
        self._tokenizer = ByteLevelTokenizer(resource_path('tokenizer.json'))
        self.spec = config.spec(self._tokenizer.eos_id)
        tensors = tiny_weights(config)
        self.checksum = weights_checksum(tensors)
        with torch.inference_mode():
            self._load(WeightReader(tensors, self.device, dtype))

    def _load(self, reader: WeightReader) -> None:
        config = self.config
        self._vision = VisionTower(
            reader.scope('vision_tower.'), reader.scope('multi_modal_projector.'), config.vision
        )
        self._rope = Rope(config.head_dim, config.max_positions, self.device)
        self._language = LanguageExpert(
            reader.scope('language_model.'),
            reader,
            config.language,
            config.num_layers,
            config.vocab_size,
            self._rope,
        )
        self._expert = ActionExpert(
            reader.scope('action_expert.'),
            reader,
            config.expert,
            config.num_layers,
            config.num_denoising_steps,
        )
        width, dim = config.expert_width, config.action_dim
        self._state_in = reader.take('state_proj.weight', width, dim).t()
        self._state_bias = reader.take('state_proj.bias', width)
        self._action_in = reader.take('action_in_proj.weight', width, dim).t()
        self._action_in_bias = reader.take('action_in_proj.bias', width)
        self._action_out = reader.take(
            'action_out_proj.weight', dim, width, dtype=torch.float32
        ).t()
        self._action_out_bias = reader.take('action_out_proj.bias', dim, dtype=torch.float32)
        reader.finish()
        self._suffix_offsets = torch.arange(self.spec.action_suffix_tokens, device=self.device)

    def preprocess(self, frame: CameraFrame) -> Tensor:
        """Resize with padding and scale: -> [3, 112, 112] in [-1, 1].

        :raises ValueError: the image is no uint8 [height, width, 3].
        """
        square = resize_with_padding(frame.image, self.config.vision.image_px)
        return to_unit_range(square, self.device, self.dtype)

    @torch.inference_mode()
    def encode_image(self, image: Tensor) -> Tensor:
        """Run the vision tower: [3, 112, 112] -> [64, width]."""
        return self._vision(image)

    @torch.inference_mode()
    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """[num_tokens] int64 -> [num_tokens, width]."""
        return self._language.embed(tokens)

    @torch.inference_mode()
    def run_layer(self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Run one language layer; hidden is left as it was. Positions below max_positions."""
        return self._language.run_layer(layer, hidden, positions, attend)

    @torch.inference_mode()
    def keys_values(self, layer: int, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Keys after RoPE and values of a language layer, each [n, num_kv_heads, head_dim]."""
        return self._language.keys_values(layer, hidden, positions)

    def run_text_layer(
        self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend
    ) -> Tensor:
        """As `run_layer`: there are no adapters."""
        return self.run_layer(layer, hidden, positions, attend)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[num_tokens, width] -> [num_tokens, vocab_size] float32."""
        return self._language.logits(hidden)

    def noise_shape(self) -> tuple[int, int]:
        """Shape of the noise: (action_horizon, action_dim)."""
        return (self.config.action_horizon, self.config.action_dim)

    def prepare_prefix(self, prefix_kv: PrefixKV) -> object:
        """Return None: passes on one prefix share nothing but the prefix."""
        return None

    @torch.inference_mode()
    def begin_action(
        self, noise: Tensor, state: FloatArray | None, position: int
    ) -> TinyActionPass:
        """Start a pass; without a state the state token is that of zeros.

        :raises ValueError: noise or state has another shape.
        """
        if tuple(noise.shape) != self.noise_shape():
            raise ValueError(
                f'noise: expected shape {list(self.noise_shape())}, got {list(noise.shape)}'
            )
        dim = self.config.action_dim
        joints = np.zeros(dim, np.float32) if state is None else np.array(state, np.float32)
        if joints.shape != (dim,):
            raise ValueError(f'state: expected shape [{dim}], got {list(joints.shape)}')
        state_row = torch.from_numpy(joints).to(self.device, self.dtype, non_blocking=True)
        return TinyActionPass(
            num_steps=self.config.num_denoising_steps,
            actions=noise.to(self.device, torch.float32, copy=True),
            state_token=torch.addmm(self._state_bias, state_row[None], self._state_in),
            rope=self._rope.rows(self._suffix_offsets + position),
            state=joints,
        )

    def prepare_action(self, action: ActionPass, shared: object, attend: Attend) -> None:
        """Do nothing: the state token sees the actions, so it is part of every step."""

    @torch.inference_mode()
    def denoise_step(self, action: ActionPass, step: int, attend: Attend) -> None:
        """Advance the pass by one Euler step of 1 / num_steps."""
        assert isinstance(action, TinyActionPass)
        actions = action.actions
        embedded = torch.addmm(self._action_in_bias, actions.to(self.dtype), self._action_in)
        hidden = torch.cat((action.state_token, embedded))
        hidden = self._expert(hidden, step, action.rope, attend)
        velocity = torch.addmm(
            self._action_out_bias, hidden[1:].to(torch.float32), self._action_out
        )
        action.velocity = velocity
        actions.add_(velocity, alpha=-1.0 / action.num_steps)

    def finish_action(self, action: ActionPass) -> FloatArray:
        """Return state + action_scale * tanh(actions), [action_horizon, action_dim], SI units.

        Waits for the device.
        """
        assert isinstance(action, TinyActionPass)
        offsets: FloatArray = np.tanh(action.actions.cpu().numpy())
        chunk: FloatArray = action.state + np.float32(self.config.action_scale) * offsets
        return chunk

    def action_prompt(self, instruction: str) -> Sequence[int]:
        """<bos> and the instruction's first bytes, 32 tokens in all; the rest is cut off."""
        if self.config.prefix_scope is PrefixScope.OBSERVATION_PROMPT:
            return ()
        return self._instruction_tokens(instruction)

    def prefix_prompt(self, instruction: str, state: FloatArray | None) -> Sequence[int]:
        """Like `action_prompt`, for the scope with the prompt in the prefix; no state in it."""
        if self.config.prefix_scope is PrefixScope.OBSERVATION:
            return ()
        return self._instruction_tokens(instruction)

    def _instruction_tokens(self, instruction: str) -> list[int]:
        tokens = [self._tokenizer.bos_id, *self._tokenizer.encode(instruction)]
        return tokens[: self.config.max_prompt_tokens]

    def text_prompt(self, text: str) -> Sequence[int]:
        """<bos>, the text and a newline; never cut off."""
        return [self._tokenizer.bos_id, *self._tokenizer.encode(text + '\n')]

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """UTF-8 bytes of tokens, special tokens left out; may end within a character."""
        return self._tokenizer.decode(tokens)
