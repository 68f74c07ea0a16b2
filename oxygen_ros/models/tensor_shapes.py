# SPDX-License-Identifier: Apache-2.0
"""Names and shapes of all tensors of a model, without any file: to generate, count and plan."""

from __future__ import annotations

from collections.abc import Iterator
import math

from .layers import LayerShape
from .vision import VisionShape
from .vla_config import Family, VLAConfig

Shape = tuple[int, ...]


def tensor_shapes(config: VLAConfig, is_tied: bool = False) -> dict[str, Shape]:
    """Return the shape of each tensor, under our names.

    :param is_tied: output head and embedding are one tensor, named lm_head.weight.
    """
    return dict(_all(config, is_tied))


def num_parameters(config: VLAConfig) -> int:
    """Count a model's parameters, PaliGemma's tied tables once."""
    is_tied = config.family is not Family.SMOLVLA
    return sum(math.prod(shape) for shape in tensor_shapes(config, is_tied).values())


def group_of(name: str) -> str:
    """Return which part of the model a tensor belongs to."""
    if name.startswith(('vision_tower.', 'multi_modal_projector.', 'connector.')):
        return 'vision'
    if name in ('lm_head.weight', 'language_model.embed_tokens.weight'):
        return 'words'
    return 'language' if name.startswith('language_model.') else 'action'


def _all(config: VLAConfig, is_tied: bool) -> Iterator[tuple[str, Shape]]:
    yield from _vision(config.vision, config.family)
    width = config.language.width
    if not is_tied:
        yield 'language_model.embed_tokens.weight', (config.vocab_size, width)
    yield 'lm_head.weight', (config.vocab_size, width)
    for i in range(config.num_layers):
        layer = f'language_model.layers.{i}.'
        yield from _layer(layer, config.language, width)
        yield from _norms(layer, config.language.width, False)
    yield 'language_model.norm.weight', (width,)
    if config.family is not Family.PALIGEMMA:
        yield from _actions(config)


def _vision(shape: VisionShape, family: Family) -> Iterator[tuple[str, Shape]]:
    tower, width = 'vision_tower.', shape.width
    yield f'{tower}embeddings.patch_embedding.weight', (width, 3, shape.patch_px, shape.patch_px)
    yield f'{tower}embeddings.patch_embedding.bias', (width,)
    yield f'{tower}embeddings.position_embedding.weight', (shape.num_patches, width)
    for i in range(shape.num_layers):
        layer = f'{tower}encoder.layers.{i}.'
        for name in ('q_proj', 'k_proj', 'v_proj', 'out_proj'):
            yield from _linear(f'{layer}self_attn.{name}', width, width)
        yield from _linear(f'{layer}mlp.fc1', shape.mlp_width, width)
        yield from _linear(f'{layer}mlp.fc2', width, shape.mlp_width)
        for name in ('layer_norm1', 'layer_norm2'):
            yield f'{layer}{name}.weight', (width,)
            yield f'{layer}{name}.bias', (width,)
    yield f'{tower}post_layernorm.weight', (width,)
    yield f'{tower}post_layernorm.bias', (width,)
    if family is Family.SMOLVLA:
        yield 'connector.weight', (shape.output_width, width * max(shape.shuffle, 1) ** 2)
    else:
        yield from _linear('multi_modal_projector.linear', shape.output_width, width)


def _layer(
    layer: str, shape: LayerShape, width_in: int, kv_in: int | None = None
) -> Iterator[tuple[str, Shape]]:
    """Yield projections; `kv_in`: K and V are made from something else than the hidden state."""
    query, kv = (heads * shape.head_dim for heads in (shape.num_heads, shape.num_kv_heads))
    yield f'{layer}self_attn.q_proj.weight', (query, width_in)
    yield f'{layer}self_attn.k_proj.weight', (kv, kv_in or width_in)
    yield f'{layer}self_attn.v_proj.weight', (kv, kv_in or width_in)
    yield f'{layer}self_attn.o_proj.weight', (width_in, query)
    yield f'{layer}mlp.gate_proj.weight', (shape.mlp_width, width_in)
    yield f'{layer}mlp.up_proj.weight', (shape.mlp_width, width_in)
    yield f'{layer}mlp.down_proj.weight', (width_in, shape.mlp_width)


def _norms(layer: str, width: int, is_modulated: bool) -> Iterator[tuple[str, Shape]]:
    for name in ('input_layernorm', 'post_attention_layernorm'):
        if is_modulated:
            yield from _linear(f'{layer}{name}.dense', 3 * width, width)
        else:
            yield f'{layer}{name}.weight', (width,)


def _actions(config: VLAConfig) -> Iterator[tuple[str, Shape]]:
    family, shape = config.family, config.expert
    width, is_pi05 = shape.width, config.family is Family.PI05
    for i in range(config.num_layers):
        layer = f'action_expert.layers.{i}.'
        crosses = family is Family.SMOLVLA and i % 2
        yield from _layer(
            layer, shape, width, shape.num_kv_heads * shape.head_dim if crosses else None
        )
        yield from _norms(layer, width, is_pi05)
    if is_pi05:
        yield from _linear('action_expert.norm.dense', 3 * width, width)
        yield from _linear('time_mlp_in', width, width)
        yield from _linear('time_mlp_out', width, width)
    else:
        state_width = config.language.width if family is Family.SMOLVLA else width
        yield 'action_expert.norm.weight', (width,)
        yield from _linear('action_time_mlp_in', width, 2 * width)
        yield from _linear('action_time_mlp_out', width, width)
        yield from _linear('state_proj', state_width, config.padded_state_dim)
    yield from _linear('action_in_proj', width, config.padded_action_dim)
    yield from _linear('action_out_proj', config.padded_action_dim, width)


def _linear(name: str, out_width: int, in_width: int) -> Iterator[tuple[str, Shape]]:
    yield f'{name}.weight', (out_width, in_width)
    yield f'{name}.bias', (out_width,)
