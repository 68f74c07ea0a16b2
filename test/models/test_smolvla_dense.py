# SPDX-License-Identifier: Apache-2.0
"""SmolVLA on paged attention against one dense pass over the whole sequence, in float64.

The reference keeps no cache, fuses nothing, masks instead of leaving out, and recomputes the
prefix and its projections in every step (LeRobot `policies/smolvla/`).
"""

from __future__ import annotations

from collections.abc import Mapping
import math

from checkpoints import small_folder, small_model
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from oxygen_ros.models.paged_sequence import PagedSequence
from oxygen_ros.models.vla_config import VLAConfig
from oxygen_ros.models.weight_file import WeightFile

Weights = Mapping[str, Tensor]


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight


def _rope(x: Tensor, positions: Tensor) -> Tensor:
    """x [n, heads, head_dim], half-split pairs turned by position / 10000^(i / half)."""
    half = x.shape[-1] // 2
    angle = positions[:, None, None] * 10_000.0 ** (-torch.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    return torch.cat(
        (first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()),
        -1,
    )


class _Layer:
    """One layer of one expert."""

    def __init__(self, weights: Weights, scope: str, config: VLAConfig) -> None:
        self.weights = {
            name.removeprefix(scope): tensor
            for name, tensor in weights.items()
            if name.startswith(scope)
        }
        self.heads, self.groups = config.language.num_heads, config.language.num_kv_heads
        self.head_dim, self.eps = config.language.head_dim, config.language.eps

    def project(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self.weights[f'self_attn.{name}_proj.weight']).view(
            len(x), -1, self.head_dim
        )

    def normed(self, x: Tensor) -> Tensor:
        return _norm(x, self.weights['input_layernorm.weight'], self.eps)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        k, v = (x.repeat_interleave(self.heads // self.groups, 1) for x in (k, v))
        scores = torch.einsum('qhd,khd->hqk', q, k) / math.sqrt(self.head_dim)
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        return torch.einsum('hqk,khd->qhd', weights, v).flatten(1)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        w = self.weights
        x = x + functional.linear(attended, w['self_attn.o_proj.weight'])
        y = _norm(x, w['post_attention_layernorm.weight'], self.eps)
        gate = functional.silu(functional.linear(y, w['mlp.gate_proj.weight']))
        up = functional.linear(y, w['mlp.up_proj.weight'])
        return x + functional.linear(gate * up, w['mlp.down_proj.weight'])


def _velocity(
    weights: Weights, config: VLAConfig, prefix: Tensor, actions: Tensor, time: float
) -> Tensor:
    """One velocity of the whole sequence [prefix with the state last][actions]."""

    def linear(name: str, x: Tensor) -> Tensor:
        return functional.linear(x, weights[f'{name}.weight'], weights[f'{name}.bias'])

    width, num_prefix, num_actions = config.expert.width, len(prefix), len(actions)
    period = 4e-3 * 1000.0 ** torch.linspace(0.0, 1.0, width // 2, dtype=torch.float64)
    phase = float(torch.tensor(time, dtype=torch.float32)) * 2.0 * math.pi / period
    embedded = torch.cat((phase.sin(), phase.cos())).expand(num_actions, -1)
    y = linear('action_time_mlp_in', torch.cat((linear('action_in_proj', actions), embedded), 1))
    y = linear('action_time_mlp_out', functional.silu(y))
    x = prefix
    in_prefix = torch.ones(num_prefix, num_prefix, dtype=torch.bool)
    in_prefix[:-1, -1] = False  # only the state sees the state
    causal = torch.ones(num_actions, num_actions, dtype=torch.bool).tril()
    to_prefix = torch.ones(num_actions, num_prefix, dtype=torch.bool)
    before, after = torch.arange(num_prefix), num_prefix + torch.arange(num_actions)
    for i in range(config.num_layers):
        language = _Layer(weights, f'language_model.layers.{i}.', config)
        expert = _Layer(weights, f'action_expert.layers.{i}.', config)
        h, a = language.normed(x), expert.normed(y)
        k, v = _rope(language.project('k', h), before), language.project('v', h)
        x = language.finish(
            x, language.attend(_rope(language.project('q', h), before), k, v, in_prefix)
        )
        if i % 2:
            q = _rope(expert.project('q', a), torch.arange(num_actions))
            k, v = expert.project('k', k.flatten(1)), expert.project('v', v.flatten(1))
            attended = expert.attend(q, k, v, to_prefix)
        else:
            k = torch.cat((k, _rope(expert.project('k', a), after)))
            v = torch.cat((v, expert.project('v', a)))
            attended = expert.attend(
                _rope(expert.project('q', a), after), k, v, torch.cat((to_prefix, causal), 1)
            )
        y = expert.finish(y, attended)
    return linear(
        'action_out_proj', _norm(y, weights['action_expert.norm.weight'], config.expert.eps)
    )


@pytest.mark.parametrize('backend', ['reference', 'sdpa'])
def test_paged_actions_equal_dense_ones(backend: str) -> None:
    model = small_model('smolvla')
    config = model.config
    file = WeightFile(small_folder('smolvla'))
    weights = {name: tensor.double() for name, tensor in file.items()}
    generator = torch.Generator().manual_seed(5)
    images = [torch.rand(3, 64, 64, generator=generator) * 2.0 - 1.0 for _ in range(2)]
    tokens = torch.randint(0, 256, (9,), generator=generator)
    state = torch.randn(1, config.padded_state_dim, generator=generator)
    noise = torch.randn(model.noise_shape(), generator=generator)
    sequence = PagedSequence(model, backend, 64, 32)
    sequence.prefill(images, tokens)
    _, action = sequence.act(noise, state)

    words = functional.embedding(tokens, weights['language_model.embed_tokens.weight'])
    prefix = torch.cat(
        [
            *(model.encode_image(image).double() for image in images),
            words * math.sqrt(config.language.width),
            functional.linear(
                state.double(), weights['state_proj.weight'], weights['state_proj.bias']
            ),
        ]
    )
    x = noise.double()
    for step in range(config.num_denoising_steps):
        time = 1.0 - step / config.num_denoising_steps
        x = x - _velocity(weights, config, prefix, x, time) / config.num_denoising_steps
    torch.testing.assert_close(action.actions.double(), x, rtol=0.0, atol=2e-5)


def test_passes_on_one_prefix_take_their_own_state() -> None:
    model = small_model('smolvla')
    noise = torch.randn(model.noise_shape(), generator=torch.Generator().manual_seed(0))
    sequence = PagedSequence(model, 'sdpa', 64, 32)
    sequence.prefill([torch.zeros(3, 64, 64)], torch.arange(5))
    states = [torch.full((1, 32), value) for value in (0.0, 1.0, 0.0)]
    first, second, third = (sequence.act(noise, state)[1].actions for state in states)
    assert torch.equal(first, third) and not torch.allclose(first, second, atol=1e-3)
