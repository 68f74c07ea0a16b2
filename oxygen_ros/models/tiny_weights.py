# SPDX-License-Identifier: Apache-2.0
"""Seeded random weights of the tiny model, in the key layout of a pi0.5 checkpoint.

Drawn so that an untrained model still behaves like one worth testing: every branch contributes
(fan-in scaling, adaRMS gates near 1), an image patch moves actions and text, text is printable,
and the flow contracts its noise, so that a chunk is smooth and depends on what the model sees.
The same seed gives the same bits on every machine: uniform draws, no transcendental functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
import math

import torch
from torch import Tensor

from .tiny_config import TinyConfig

Shape = tuple[int, ...]

_GAINS = {  # standard deviation of a product's output for inputs of standard deviation 1
    'q_proj.weight': 1.4,
    'k_proj.weight': 1.4,
    'lm_head.weight': 2.0,
    'patch_embedding.weight': 2.0,
    'state_proj.weight': 2.0,
    'dense.weight': 0.3,
}
_EXPERT_BRANCH_GAIN = 0.7  # keeps the action tokens' own part of the residual stream
_ACTION_BIAS = 1.5  # an action token's part that its noise does not touch
_FLOW_CONTRACTION = 7.0  # slope of the velocity along the noise, before the final norm
_PRINTABLE = range(0x20, 0x7F)
_QUIET = 0.05  # factor on head rows of all other tokens: greedy text never holds one


def tiny_weights(config: TinyConfig) -> dict[str, Tensor]:
    """Draw all weights: name -> float32 tensor on the CPU."""
    weights = {name: _draw(name, shape, config.seed) for name, shape in tiny_shapes(config)}
    loud = torch.full((config.vocab_size, 1), _QUIET)
    loud[_PRINTABLE.start : _PRINTABLE.stop] = 1.0
    weights['lm_head.weight'] *= loud
    into = weights['action_in_proj.weight']  # [width, action_dim]
    gain = _FLOW_CONTRACTION / (into.square().sum() / config.action_dim)
    weights['action_out_proj.weight'] += gain * into.t()
    return weights


def tiny_shapes(config: TinyConfig) -> Iterator[tuple[str, Shape]]:
    """Name and shape of every weight."""
    vision, language, expert = config.vision, config.language, config.expert
    tower = 'vision_tower.'
    yield (
        f'{tower}embeddings.patch_embedding.weight',
        (vision.width, 3, vision.patch_px, vision.patch_px),
    )
    yield f'{tower}embeddings.patch_embedding.bias', (vision.width,)
    yield f'{tower}embeddings.position_embedding.weight', (vision.num_tokens, vision.width)
    for i in range(vision.num_layers):
        layer = f'{tower}encoder.layers.{i}.'
        for name in ('q_proj', 'k_proj', 'v_proj', 'out_proj'):
            yield from _linear(f'{layer}self_attn.{name}', vision.width, vision.width)
        yield from _linear(f'{layer}mlp.fc1', vision.mlp_width, vision.width)
        yield from _linear(f'{layer}mlp.fc2', vision.width, vision.mlp_width)
        for name in ('layer_norm1', 'layer_norm2'):
            yield f'{layer}{name}.weight', (vision.width,)
            yield f'{layer}{name}.bias', (vision.width,)
    yield f'{tower}post_layernorm.weight', (vision.width,)
    yield f'{tower}post_layernorm.bias', (vision.width,)
    yield from _linear('multi_modal_projector.linear', language.width, vision.width)
    yield 'language_model.embed_tokens.weight', (config.vocab_size, language.width)
    yield 'language_model.norm.weight', (language.width,)
    yield 'lm_head.weight', (config.vocab_size, language.width)
    yield from _linear('action_expert.norm.dense', 3 * expert.width, expert.width)
    for scope, shape in (('language_model.', language), ('action_expert.', expert)):
        query_width, kv_width = (
            shape.num_heads * shape.head_dim,
            (shape.num_kv_heads * shape.head_dim),
        )
        for i in range(config.num_layers):
            layer = f'{scope}layers.{i}.'
            yield f'{layer}self_attn.q_proj.weight', (query_width, shape.width)
            yield f'{layer}self_attn.k_proj.weight', (kv_width, shape.width)
            yield f'{layer}self_attn.v_proj.weight', (kv_width, shape.width)
            yield f'{layer}self_attn.o_proj.weight', (shape.width, query_width)
            yield f'{layer}mlp.gate_proj.weight', (shape.mlp_width, shape.width)
            yield f'{layer}mlp.up_proj.weight', (shape.mlp_width, shape.width)
            yield f'{layer}mlp.down_proj.weight', (shape.width, shape.mlp_width)
            for norm in ('input_layernorm', 'post_attention_layernorm'):
                if scope == 'language_model.':
                    yield f'{layer}{norm}.weight', (shape.width,)
                else:
                    yield from _linear(f'{layer}{norm}.dense', 3 * shape.width, shape.width)
    for name in ('time_mlp_in', 'time_mlp_out'):
        yield from _linear(name, expert.width, expert.width)
    yield from _linear('state_proj', expert.width, config.action_dim)
    yield from _linear('action_in_proj', expert.width, config.action_dim)
    yield from _linear('action_out_proj', config.action_dim, expert.width)


def _linear(name: str, out_width: int, in_width: int) -> Iterator[tuple[str, Shape]]:
    yield f'{name}.weight', (out_width, in_width)
    yield f'{name}.bias', (out_width,)


def _draw(name: str, shape: Shape, seed: int) -> Tensor:
    """Draw one tensor from a generator of its own, so that no other tensor's shape moves it."""
    key = sha256(f'{seed} {name}'.encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(key[:7], 'big'))
    unit = (torch.rand(shape, generator=generator) * 2.0 - 1.0) * math.sqrt(3.0)  # deviation 1
    if 'norm' in name and 'dense' not in name:
        one = 1.0 if name.startswith('vision_tower.') and name.endswith('weight') else 0.0
        return unit * 0.1 + one
    if name.endswith('dense.bias'):
        bias = unit * 0.1
        bias[2 * shape[0] // 3 :] += 1.0  # the gate
        return bias
    if name.endswith('bias'):
        return unit * (_ACTION_BIAS if name == 'action_in_proj.bias' else 0.1)
    if name.endswith('position_embedding.weight'):
        return unit * 0.5
    gain = next((gain for end, gain in _GAINS.items() if name.endswith(end)), 1.0)
    if name.startswith('action_expert.') and name.endswith(('o_proj.weight', 'down_proj.weight')):
        gain *= _EXPERT_BRANCH_GAIN
    fan_in = shape[1] if name.endswith('embed_tokens.weight') else math.prod(shape[1:])
    return unit * (gain / math.sqrt(fan_in))
