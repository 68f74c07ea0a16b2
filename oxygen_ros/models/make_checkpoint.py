# SPDX-License-Identifier: Apache-2.0
"""Writing a checkpoint with random weights in LeRobot's layout: to try, test and measure with."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file
from tokenizers import AddedToken, decoders, pre_tokenizers, processors, Tokenizer
from tokenizers import models as token_models
import torch
from torch import Tensor

from .errors import CheckpointError
from .layers import LayerShape
from .presets import preset
from .tensor_shapes import Shape, tensor_shapes
from .text_tokenizer import TOKENIZER_NAME
from .tokenizer import bytes_to_unicode
from .vision import VisionShape
from .vla_config import Family, VLAConfig

SPECIAL_TOKENS = ('<pad>', '<eos>', '<bos>', '<unk>', *(f'<reserved_{i}>' for i in range(4)))
_SMALL_VOCAB_SIZE = 256 + len(SPECIAL_TOKENS)
_STATE_RANGE = 3.2  # SI units: normalisation maps -3.2 .. 3.2 to -1 .. 1
_ACTION_RANGE = 0.2


def small_config(family: Family, cameras: tuple[str, ...], num_joints: int) -> VLAConfig:
    """Return sizes that run on one CPU core; sixteen tokens an image, four layers."""
    is_smol = family is Family.SMOLVLA
    activation, eps = ('silu', 1e-5) if is_smol else ('gelu_tanh', 1e-6)
    heads = (4, 2 if is_smol else 1, 16, activation, eps)
    vision = VisionShape(
        64 if is_smol else 56, 8 if is_smol else 14, 48, 96, 2, 4, 64, shuffle=2 if is_smol else 0
    )
    return VLAConfig(
        family,
        vision,
        LayerShape(64, 128, *heads),
        LayerShape(48, 96, *heads),
        4,
        _SMALL_VOCAB_SIZE,
        16,
        max(32, num_joints),
        num_joints,
        max(32, num_joints),
        num_joints,
        200 if family is Family.PI05 else 48,
        cameras,
    )


def real_config(family: Family, cameras: tuple[str, ...], num_joints: int) -> VLAConfig:
    """Return the real model's sizes."""
    return replace(
        preset(family.value), cameras=cameras, action_dim=num_joints, state_dim=num_joints
    )


def write_checkpoint(
    folder: Path, config: VLAConfig, seed: int = 0, dtype: torch.dtype = torch.float32
) -> None:
    """Write weights, config, processors and tokenizer.

    :raises CheckpointError: the folder exists and is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f'{folder}: expected a new or empty folder')
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        lerobot_name(name, config.family): draw(name, shape, seed).to(dtype)
        for name, shape in tensor_shapes(config).items()
    }
    save_file(tensors, folder / 'model.safetensors')
    write_description(folder, config)


def write_description(folder: Path, config: VLAConfig) -> None:
    """Write what a checkpoint holds beside its weights: config, processors, tokenizer."""
    _write_json(folder / 'config.json', policy_config(config))
    _write_processors(folder, config)
    make_tokenizer().save(str(folder / TOKENIZER_NAME))


def lerobot_name(name: str, family: Family) -> str:
    """Return LeRobot's name of a tensor; the inverse of `canonical_name`."""
    smol = family is Family.SMOLVLA
    outer = 'model.vlm_with_expert.' if smol else 'model.paligemma_with_expert.'
    inner = outer + ('vlm.' if smol else 'paligemma.')
    for ours, theirs in (
        (
            'vision_tower.',
            inner + ('model.vision_model.' if smol else 'model.vision_tower.vision_model.'),
        ),
        ('multi_modal_projector.', inner + 'model.multi_modal_projector.'),
        ('connector.', inner + 'model.connector.modality_projection.proj.'),
        ('language_model.', inner + ('model.text_model.' if smol else 'model.language_model.')),
        ('lm_head.', inner + 'lm_head.'),
        ('action_expert.', outer + ('lm_expert.' if smol else 'gemma_expert.model.')),
    ):
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return f'model.{name}'


def draw(name: str, shape: Shape, seed: int, device: torch.device | str = 'cpu') -> Tensor:
    """Draw one tensor, scaled by its inputs, from a generator of its own.

    Norms, biases and modulations are all non-trivial, so that no mistake hides behind a zero.

    :param device: where it is drawn; other kinds of device draw other numbers.
    """
    key = sha256(f'{seed} {name}'.encode()).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(key[:7], 'big'))
    normal = torch.randn(shape, generator=generator, device=device)
    if '.dense.' in name:  # rows are scale, shift, gate
        return normal * (0.6 if name.endswith('bias') else 2.0 / math.sqrt(shape[-1]))
    if 'norm' in name and name.endswith('weight'):
        one = name.startswith('vision_tower.') or name.endswith('norm1.weight')
        return normal * 0.2 + float(one)
    if name.endswith('bias'):
        return normal * 0.1
    if name.endswith('position_embedding.weight'):
        return normal * 0.5
    gain = {'lm_head.weight': 3.0, 'connector.weight': 0.4}.get(name, 1.0)
    return normal * (gain / math.sqrt(math.prod(shape[1:])))


def make_tokenizer() -> Tokenizer:
    """Return a byte-level tokenizer of 256 bytes that begins a text with <bos>, as Gemma's."""
    vocabulary = {text: byte for byte, text in bytes_to_unicode().items()}
    tokenizer = Tokenizer(token_models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL_TOKENS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single='<bos> $A', special_tokens=[('<bos>', tokenizer.token_to_id('<bos>'))]
    )
    return tokenizer


def _features(config: VLAConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs: dict[str, Any] = {
        f'observation.images.{camera}': {'type': 'VISUAL', 'shape': [3, 480, 640]}
        for camera in config.cameras
    }
    inputs['observation.state'] = {'type': 'STATE', 'shape': [config.state_dim]}
    return inputs, {'action': {'type': 'ACTION', 'shape': [config.action_dim]}}


def _norm_map(config: VLAConfig) -> dict[str, str]:
    mode = 'QUANTILES' if config.family is Family.PI05 else 'MEAN_STD'
    return {'VISUAL': 'IDENTITY', 'STATE': mode, 'ACTION': mode}


def policy_config(config: VLAConfig) -> dict[str, Any]:
    """Return config.json: what LeRobot writes and we read, with all sizes."""
    inputs, outputs = _features(config)
    language, expert, vision = config.language, config.expert, config.vision
    is_smol = config.family is Family.SMOLVLA
    return {
        'type': config.family.value,
        'input_features': inputs,
        'output_features': outputs,
        'chunk_size': config.action_horizon,
        'n_action_steps': config.action_horizon,
        'max_state_dim': config.padded_state_dim,
        'max_action_dim': config.padded_action_dim,
        'num_steps' if is_smol else 'num_inference_steps': config.num_denoising_steps,
        'tokenizer_max_length': config.max_prompt_tokens,
        'empty_cameras': 0,
        'normalization_mapping': _norm_map(config),
        'min_period': config.min_period,
        'max_period': config.max_period,
        'sizes': {
            'family': config.family.value,
            'layers': config.num_layers,
            'width': language.width,
            'heads': language.num_heads,
            'kv_heads': language.num_kv_heads,
            'head_dim': language.head_dim,
            'mlp': language.mlp_width,
            'expert_width': expert.width,
            'expert_mlp': expert.mlp_width,
            'vision_width': vision.width,
            'vision_heads': vision.num_heads,
            'vision_layers': vision.num_layers,
            'vision_mlp': vision.mlp_width,
            'image_size': vision.image_px,
            'patch': vision.patch_px,
            'vocab': config.vocab_size,
            'cameras': len(config.cameras),
            'connector_scale': vision.shuffle,
            'rms_eps': language.eps,
            'vision_eps': vision.eps,
        },
    }


def _write_processors(folder: Path, config: VLAConfig) -> None:
    """Write both pipelines with the steps and names that LeRobot gives them."""
    inputs, outputs = _features(config)
    norm = {'eps': 1e-8, 'features': inputs | outputs, 'norm_map': _norm_map(config)}
    newline = (
        'pi0_new_line_processor' if config.family is Family.PI0 else ('smolvla_new_line_processor')
    )
    normalise = _step(
        'normalizer_processor', norm, 'policy_preprocessor_step_3_normalizer_processor.safetensors'
    )
    tokens = _step(
        'tokenizer_processor',
        {
            'max_length': config.max_prompt_tokens,
            'task_key': 'task',
            'padding_side': 'right',
            'padding': 'max_length',
            'truncation': True,
            'tokenizer_name': '.',
        },
    )
    prompt = (
        [normalise, _step('pi05_prepare_state_tokenizer_processor_step', {}), tokens]
        if config.family is Family.PI05
        else [_step(newline, {}), tokens, normalise]
    )
    before = [
        _step('rename_observations_processor', {'rename_map': {}}),
        _step('to_batch_processor', {}),
        *prompt,
        _step('device_processor', {'device': 'cpu', 'float_dtype': None}),
    ]
    after = [
        _step(
            'unnormalizer_processor',
            norm | {'features': outputs},
            'policy_postprocessor_step_0_unnormalizer_processor.safetensors',
        ),
        _step('device_processor', {'device': 'cpu', 'float_dtype': None}),
    ]
    statistics = {
        f'{feature}.{key}': value
        for feature, size, scale in (
            ('observation.state', config.state_dim, _STATE_RANGE),
            ('action', config.action_dim, _ACTION_RANGE),
        )
        for key, value in _statistics(size, scale).items()
    }
    for name, steps in (('policy_preprocessor', before), ('policy_postprocessor', after)):
        _write_json(folder / f'{name}.json', {'name': name, 'steps': steps})
        for step in steps:
            if 'state_file' in step:
                save_arrays(statistics, folder / step['state_file'])


def _step(name: str, config: dict[str, Any], state_file: str | None = None) -> dict[str, Any]:
    step: dict[str, Any] = {'registry_name': name, 'config': config}
    return step if state_file is None else step | {'state_file': state_file}


def _statistics(size: int, scale: float) -> dict[str, np.typing.NDArray[np.float32]]:
    one = np.full(size, scale, np.float32)
    return {
        'min': -one,
        'q01': -one,
        'q10': -0.8 * one,
        'mean': 0.0 * one,
        'std': 0.5 * one,
        'q90': 0.8 * one,
        'q99': one,
        'max': one,
    }


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2) + '\n', encoding='utf-8')
