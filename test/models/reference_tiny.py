# SPDX-License-Identifier: Apache-2.0
"""The tiny model without anything clever: the oracle that fused and paged results are held to.

Every call recomputes everything with plain dense attention under an explicit mask: no cache, no
fused product, no precomputed conditioning. Shares weights and config with `TinyModel`, no code.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

import torch
from torch import Tensor
from torch.nn import functional

from oxygen_ros.engine.spec import PrefixScope
from oxygen_ros.models.tiny_config import TinyConfig
from oxygen_ros.models.tiny_weights import tiny_weights

_TOKENS_OF_STATE = 1


class ReferenceTiny:
    """Cacheless recompute on the CPU; in float64, so that a difference is the other side's."""

    def __init__(self, config: TinyConfig, dtype: torch.dtype = torch.float64) -> None:
        self.config = config
        self.dtype = dtype
        self.weights = {name: tensor.to(dtype) for name, tensor in tiny_weights(config).items()}

    @torch.inference_mode()
    def text_logits(
        self,
        images: Sequence[Tensor],
        prompt: Sequence[int],
        generated: Sequence[int] = (),
        instruction: Sequence[int] = (),
    ) -> Tensor:
        """Logits after each private token.

        :param images: preprocessed, each [3, 112, 112].
        :param prompt: tokens of the text's own causal seed; at least one.
        :param generated: tokens decoded so far.
        :param instruction: tokens of the prompt inside the prefix (scope observation+prompt).
        :return: [len(prompt) + len(generated), vocab_size] float32; the last row is for the next
            token.
        """
        prefix, _ = self._prefix(images, instruction)
        hidden = torch.cat((prefix, self._embed([*prompt, *generated])))
        mask = _mask(len(prefix), len(hidden) - len(prefix), 0)
        hidden, _ = self._run(hidden, None, mask, None)
        logits = hidden[len(prefix) :] @ self.weights['lm_head.weight'].t()
        return logits.to(torch.float32)

    @torch.inference_mode()
    def actions(
        self,
        images: Sequence[Tensor],
        instruction: Sequence[int],
        state: Sequence[float] | None,
        noise: Tensor,
    ) -> Tensor:
        """Integrate the flow: the model's own output, before scaling to joints.

        :param instruction: tokens of the prompt, private or inside the prefix by the scope.
        :param state: measured joints [action_dim], SI units; None: zeros.
        :param noise: [action_horizon, action_dim].
        :return: [action_horizon, action_dim] float32.
        """
        prefix, private = self._prefix(images, instruction)
        hidden = torch.cat((prefix, private))
        mask = _mask(len(prefix), len(private), _TOKENS_OF_STATE + len(noise))
        joints = torch.zeros(noise.shape[1]) if state is None else torch.tensor(state)
        state_token = self._linear('state_proj', joints.to(self.dtype)[None])
        x, num_steps = noise.to(self.dtype), self.config.num_denoising_steps
        for step in range(num_steps):
            suffix = torch.cat((state_token, self._linear('action_in_proj', x)))
            _, out = self._run(hidden, suffix, mask, self._condition(1.0 - step / num_steps))
            x = x - self._linear('action_out_proj', out[_TOKENS_OF_STATE:]) / num_steps
        return x.to(torch.float32)

    def chunk(self, actions: Tensor, state: Sequence[float] | None) -> Tensor:
        """Joint targets of the model's output: [action_horizon, action_dim], SI units."""
        measured = torch.zeros(actions.shape[1]) if state is None else torch.tensor(state)
        return measured + self.config.action_scale * torch.tanh(actions)

    def encode_image(self, image: Tensor) -> Tensor:
        """Vision tower and projector: [3, 112, 112] -> [64, width] in the oracle's dtype."""
        shape, tower = self.config.vision, 'vision_tower.'
        x = functional.conv2d(
            image[None].to(self.dtype),
            self.weights[f'{tower}embeddings.patch_embedding.weight'],
            self.weights[f'{tower}embeddings.patch_embedding.bias'],
            stride=shape.patch_px,
        )
        x = x[0].flatten(1).t() + self.weights[f'{tower}embeddings.position_embedding.weight']
        everyone = torch.ones(len(x), len(x), dtype=torch.bool)
        for i in range(shape.num_layers):
            layer = f'{tower}encoder.layers.{i}.'
            y = self._layer_norm(f'{layer}layer_norm1', x)
            q, k, v = (
                self._linear(f'{layer}self_attn.{name}_proj', y).view(len(y), shape.num_heads, -1)
                for name in 'qkv'
            )
            x = x + self._linear(f'{layer}self_attn.out_proj', _attention(q, k, v, everyone))
            y = self._linear(f'{layer}mlp.fc1', self._layer_norm(f'{layer}layer_norm2', x))
            x = x + self._linear(f'{layer}mlp.fc2', _gelu(y))
        return self._linear(
            'multi_modal_projector.linear', self._layer_norm(f'{tower}post_layernorm', x)
        )

    def _prefix(
        self, images: Sequence[Tensor], instruction: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        tokens = self._embed(instruction)
        parts = [self.encode_image(image) for image in images]
        if self.config.prefix_scope is PrefixScope.OBSERVATION_PROMPT:
            return torch.cat((*parts, tokens)), tokens[:0]
        return torch.cat(parts), tokens

    def _embed(self, tokens: Sequence[int]) -> Tensor:
        table = self.weights['language_model.embed_tokens.weight']
        return table[torch.tensor(tokens, dtype=torch.int64)] * math.sqrt(table.shape[1])

    def _run(
        self, hidden: Tensor, suffix: Tensor | None, mask: Tensor, condition: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Run both experts' layers over [hidden; suffix]; return both after their final norm."""
        streams = [('language_model.', hidden)]
        if suffix is not None:
            streams.append(('action_expert.', suffix))
        sizes = [len(x) for _, x in streams]
        for i in range(self.config.num_layers):
            joint, gates = [], []
            for scope, x in streams:
                layer = f'{scope}layers.{i}.'
                y, gate = self._norm(f'{layer}input_layernorm', x, condition)
                gates.append(gate)
                joint.append(
                    [
                        (y @ self.weights[f'{layer}self_attn.{name}_proj.weight'].t()).view(
                            len(y), -1, self.config.head_dim
                        )
                        for name in 'qkv'
                    ]
                )
            q, k, v = (torch.cat(parts) for parts in zip(*joint, strict=True))
            attended = torch.split(_attention(_rotate(q), _rotate(k), v, mask), sizes)
            for n, (scope, x) in enumerate(streams):
                layer = f'{scope}layers.{i}.'
                output = self.weights[f'{layer}self_attn.o_proj.weight']
                x = x + gates[n] * (attended[n] @ output.t())
                y, gate = self._norm(f'{layer}post_attention_layernorm', x, condition)
                mlp = {
                    name: self.weights[f'{layer}mlp.{name}_proj.weight']
                    for name in ('gate', 'up', 'down')
                }
                inner = _gelu(y @ mlp['gate'].t()) * (y @ mlp['up'].t())
                streams[n] = (scope, x + gate * (inner @ mlp['down'].t()))
        outputs = [self._norm(f'{scope}norm', x, condition)[0] for scope, x in streams]
        return outputs[0], outputs[-1]

    def _norm(self, name: str, x: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
        normed = x / torch.sqrt(x.square().mean(1, keepdim=True) + 1e-6)
        if f'{name}.weight' in self.weights:
            return normed * (1.0 + self.weights[f'{name}.weight']), torch.ones(())
        assert condition is not None
        scale, shift, gate = self._linear(f'{name}.dense', condition).chunk(3)
        return normed * (1.0 + scale) + shift, gate

    def _condition(self, time: float) -> Tensor:
        half = self.config.expert_width // 2
        periods = [4e-3 * (4.0 / 4e-3) ** (i / (half - 1)) for i in range(half)]
        phases = [2.0 * math.pi * time / period for period in periods]
        x = torch.tensor(
            [math.sin(p) for p in phases] + [math.cos(p) for p in phases], dtype=self.dtype
        )
        for name in ('time_mlp_in', 'time_mlp_out'):
            x = functional.silu(self._linear(name, x))
        return x

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self.weights[f'{name}.weight'], self.weights[f'{name}.bias'])

    def _layer_norm(self, name: str, x: Tensor) -> Tensor:
        return functional.layer_norm(
            x, x.shape[1:], self.weights[f'{name}.weight'], self.weights[f'{name}.bias'], 1e-6
        )


def _mask(num_prefix: int, num_private: int, num_suffix: int) -> Tensor:
    """[n, n], row sees column: prefix itself; private causally; suffix everything."""
    n = num_prefix + num_private + num_suffix
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    mask[:num_prefix, :num_prefix] = True
    mask[num_prefix + num_private :] = True
    return mask


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Dense attention over [n, heads, head_dim] -> [n, heads * head_dim]."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum('ihd,jhd->hij', q, k) / math.sqrt(q.shape[2])
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return torch.einsum('hij,jhd->ihd', weights, v).flatten(1)


def _rotate(x: Tensor) -> Tensor:
    """Half-split RoPE of [n, heads, head_dim] at positions 0 .. n - 1; angles in float32."""
    half = x.shape[2] // 2
    angle = (torch.arange(len(x))[:, None] / 10_000.0 ** (torch.arange(half) / half))[:, None]
    angle = angle.to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat(
        (first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()), 2
    )


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
