# SPDX-License-Identifier: Apache-2.0
"""The Protocol through which a model is handed to the engine; the engine never imports models.

A model is maths without memory: it holds weights and no K/V. Each layer gets a function `attend`
that writes the fresh K/V into the pages of the task at hand and returns attention over its prefix
and its own pages.
Only the thread that owns the engine may call a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ..types import CameraFrame, FloatArray
from .spec import ModelSpec

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""`attend(layer, q, k, v) -> out`, keys and queries after RoPE.

q [num_tokens, num_heads, head_dim], k and v [num_tokens, num_kv_heads, head_dim],
out [num_tokens, num_heads * head_dim].
"""


PrefixKV = Callable[[int], tuple[Tensor, Tensor]]
"""`prefix_kv(layer) -> (k, v)`: views on a complete prefix, to be read only.

Each [num_tokens, num_kv_heads, head_dim], keys after RoPE.
"""


class ActionPass(Protocol):
    """The state of one action pass between two denoising steps."""

    num_steps: int


class VLAModel(Protocol):
    """A Mixture-of-Transformers VLA: vision tower, language expert and action expert."""

    spec: ModelSpec
    device: torch.device
    dtype: torch.dtype
    checksum: str  # SHA-256 over the weights

    def preprocess(self, frame: CameraFrame) -> Tensor:
        """Return the image as the tower takes it: [3, height, width], its range and dtype."""
        ...

    def encode_image(self, image: Tensor) -> Tensor:
        """Run the vision tower on one image: [3, height, width] -> [tokens_per_image, width]."""
        ...

    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """[num_tokens] int64 -> [num_tokens, width]."""
        ...

    def run_layer(self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Run one layer of the language expert.

        :param hidden: [num_tokens, width]; left as it was.
        :param positions: [num_tokens] int64.
        :return: [num_tokens, width].
        """
        ...

    def keys_values(self, layer: int, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `run_layer` would leave in the cache, without the rest of the layer.

        For the last layer of tokens whose output nobody reads: a prefix, an action's prompt.

        :return: keys after RoPE and values, each [num_tokens, num_kv_heads, head_dim].
        """
        ...

    def run_text_layer(
        self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend
    ) -> Tensor:
        """Run one layer for tokens of a text request, with text adapters where there are any.

        Otherwise as `run_layer`.
        """
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """Final norm and output head: [num_tokens, width] -> [num_tokens, vocab_size] float32."""
        ...

    def prepare_prefix(self, prefix_kv: PrefixKV) -> object:
        """Compute what all passes on one complete prefix share; None where there is nothing."""
        ...

    def begin_action(self, noise: Tensor, state: FloatArray | None, position: int) -> ActionPass:
        """Start a pass at flow time 1 (pure noise).

        :param noise: [action_horizon, action_dim padded as the model takes it], float32.
        :param state: measured joints [num_joints] in SI units, or None where the model takes none.
        :param position: position of the first suffix token.
        """
        ...

    def prepare_action(self, action: ActionPass, shared: object, attend: Attend) -> None:
        """Run the `spec.action_head_tokens` first tokens of the suffix, once a pass, before all.

        :param shared: what `prepare_prefix` returned; one pass at a time may use it.
        :param attend: causal over the prefix and the head tokens; only called if there are any.
        """
        ...

    def denoise_step(self, action: ActionPass, step: int, attend: Attend) -> None:
        """Advance the pass by one Euler step; `attend` is for the suffix without its head."""
        ...

    def finish_action(self, action: ActionPass) -> FloatArray:
        """Return the chunk, un-normalised: [action_horizon, action_dim] float32, SI units."""
        ...

    def noise_shape(self) -> tuple[int, int]:
        """Shape of the noise that `begin_action` takes."""
        ...

    def action_prompt(self, instruction: str) -> Sequence[int]:
        """Tokens of the action's own private prompt; empty where the prefix holds the prompt."""
        ...

    def prefix_prompt(self, instruction: str, state: FloatArray | None) -> Sequence[int]:
        """Tokens of the prompt inside the prefix; empty where the scope is the observation."""
        ...

    def text_prompt(self, text: str) -> Sequence[int]:
        """Tokens of the private causal seed of a text request."""
        ...

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """UTF-8 bytes of tokens, special tokens left out; may end within a character."""
        ...
