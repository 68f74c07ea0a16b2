# SPDX-License-Identifier: Apache-2.0
"""One sequence over dense lists of K/V: a trivial `attend`, and a model run through it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from oxygen_ros.models.tiny import TinyActionPass, TinyModel
from oxygen_ros.types import CameraFrame, FloatArray


class DenseSequence:
    """A model's prefix and whatever follows it; a fork shares what is stored and grows alone."""

    def __init__(self, model: TinyModel) -> None:
        self.model = model
        self.num_tokens = 0
        self._layers: list[list[Tensor]] = [[] for _ in range(model.spec.num_layers)]

    def fork(self) -> DenseSequence:
        """Return a sequence with the same tokens."""
        other = DenseSequence(self.model)
        other.num_tokens = self.num_tokens
        other._layers = [list(layer) for layer in self._layers]
        return other

    def add_prefix(self, images: Sequence[Tensor], prompt: Sequence[int] = ()) -> DenseSequence:
        """Prefill images and prompt as one bidirectional block; return self."""
        parts = [self.model.encode_image(image) for image in images]
        parts.append(self.model.embed_tokens(torch.tensor(prompt, dtype=torch.int64)))
        self._run(torch.cat(parts), self._bidirectional)
        return self

    def add_tokens(self, tokens: Sequence[int]) -> Tensor:
        """Append tokens causally; return their logits [num_tokens, vocab_size]."""
        hidden = self.model.embed_tokens(torch.tensor(tokens, dtype=torch.int64))
        return self.model.logits(self._run(hidden, self._causal))

    def decode(self, prompt: Sequence[int], num_tokens: int) -> tuple[list[int], Tensor]:
        """Append the prompt and greedy tokens; return those, and all logits."""
        rows, tokens = [self.add_tokens(prompt)], list[int]()
        for _ in range(num_tokens):
            tokens.append(int(rows[-1][-1].argmax()))
            rows.append(self.add_tokens(tokens[-1:]))
        return tokens, torch.cat(rows)

    def act(self, noise: Tensor, state: FloatArray | None) -> tuple[TinyActionPass, FloatArray]:
        """Make an action pass after all tokens so far, which it leaves as they are."""
        action = self.model.begin_action(noise, state, self.num_tokens)
        for step in range(action.num_steps):
            self.model.denoise_step(action, step, self.transient)
        return action, self.model.finish_action(action)

    def transient(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend over everything and forget the fresh k and v."""
        return self._attend(layer, q, k, v, keep=False, causal=False)

    def _bidirectional(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self._attend(layer, q, k, v, keep=True, causal=False)

    def _causal(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self._attend(layer, q, k, v, keep=True, causal=True)

    def _run(self, hidden: Tensor, attend: object) -> Tensor:
        positions = torch.arange(self.num_tokens, self.num_tokens + len(hidden))
        for layer in range(self.model.spec.num_layers):
            hidden = self.model.run_layer(layer, hidden, positions, attend)  # type: ignore
        self.num_tokens += len(hidden)
        return hidden

    def _attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, keep: bool, causal: bool
    ) -> Tensor:
        fresh = torch.stack((k, v))  # [2, num_tokens, num_kv_heads, head_dim]
        keys, values = torch.cat([*self._layers[layer], fresh], 1).transpose(1, 2)
        if keep:
            self._layers[layer].append(fresh)
        mask = torch.ones(len(q), keys.shape[1], dtype=torch.bool)
        if causal:
            mask = mask.tril(keys.shape[1] - len(q))
        out = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(0, 1)[None], keys[None], values[None], mask, enable_gqa=True
        )
        return out[0].transpose(0, 1).flatten(1)


def camera_frame(seed: int, height: int = 48, width: int = 64) -> CameraFrame:
    """Return a frame of random coloured squares."""
    squares = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    image = squares.repeat(-(-height // 6), 0).repeat(-(-width // 8), 1)[:height, :width]
    return CameraFrame(f'camera_{seed}', 1, 1, image)


def noise(model: TinyModel, seed: int = 0) -> Tensor:
    """Return seeded noise for a pass."""
    return torch.randn(model.noise_shape(), generator=torch.Generator().manual_seed(seed))
