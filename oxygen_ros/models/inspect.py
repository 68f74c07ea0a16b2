# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint folder holds, what it lacks, and whether it would load."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
import math
from pathlib import Path

import torch

from .checkpoint import load_checkpoint, read_folder
from .config_file import ConfigFile
from .errors import CheckpointError
from .normalise import Normaliser
from .tensor_shapes import group_of, num_parameters, tensor_shapes
from .vla_config import Family, VLAConfig
from .weight_file import WeightFile

# Bytes of one number, by safetensors' name of its type.
_BYTES = {
    'F64': 8,
    'F32': 4,
    'F16': 2,
    'BF16': 2,
    'I64': 8,
    'I32': 4,
    'I16': 2,
    'I8': 1,
    'U8': 1,
    'BOOL': 1,
    'F8_E4M3': 1,
    'F8_E5M2': 1,
}


@dataclass(slots=True)
class Inspection:
    """Facts by name, and problems; without problems the checkpoint loads."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def inspect_checkpoint(folder: Path) -> Inspection:
    """Read headers and files, check every number of every tensor; needs no memory for weights."""
    result = Inspection()
    try:
        file, weights, config = read_folder(folder)
    except CheckpointError as error:
        result.problems.append(str(error))
        return result
    _sizes(result, file, config)
    _weights(result, weights, config)
    try:
        with_processing = config.family is not Family.PALIGEMMA
        model = load_checkpoint(
            folder, device=torch.device('meta'), with_processing=with_processing
        )
    except CheckpointError as error:
        result.problems.append(str(error))
        return result
    result.facts.append(('checksum', model.checksum))
    if model.processing is not None:
        processing = model.processing
        result.facts += [
            ('images', f'{config.vision.image_px} px, {processing.images.value}'),
            (
                'prompt',
                f'{processing.prompt.value}, at most {processing.max_prompt_tokens} tokens',
            ),
            ('state', _statistics(processing.state)),
            ('action', _statistics(processing.action)),
            ('end of text', ', '.join(map(str, processing.tokenizer.eos_ids))),
        ]
    return result


def _sizes(result: Inspection, file: ConfigFile, config: VLAConfig) -> None:
    language, expert, vision = config.language, config.expert, config.vision
    spec = config.spec(1.0, ())
    result.facts += [
        ('family', config.family.value),
        ('source', 'LeRobot' if file.is_lerobot else 'openpi'),
        (
            'vision',
            f'{vision.num_layers} layers of {vision.width}, {vision.image_px} px in '
            f'patches of {vision.patch_px}: {vision.num_tokens} tokens an image',
        ),
        (
            'language',
            f'{config.num_layers} layers of {language.width}, {language.num_heads} heads '
            f'of {language.head_dim}, {language.num_kv_heads} for K and V; '
            f'{config.vocab_size:,} words',
        ),
        (
            'action expert',
            f'{config.num_layers} layers of {expert.width}, {config.num_denoising_steps} steps',
        ),
        ('cameras', ', '.join(config.cameras)),
        (
            'horizon',
            f'{config.action_horizon} steps of {config.action_dim} joints '
            f'(padded to {config.padded_action_dim})',
        ),
        ('state', f'{config.state_dim} joints, {spec.state_in.value}'),
        (
            'KV per token',
            f'{spec.kv_bytes_per_token(4):,} B in float32, '
            f'{spec.kv_bytes_per_token(2):,} B in bfloat16',
        ),
        ('prefix', f'at most {spec.max_prefix_tokens} tokens'),
    ]


def _weights(result: Inspection, weights: WeightFile, config: VLAConfig) -> None:
    expected = tensor_shapes(config)
    by_type: Counter[str] = Counter()
    by_group: Counter[str] = Counter()
    for name in weights:
        count = math.prod(weights.shape(name))
        by_type[weights.dtype(name)] += count
        by_group[group_of(name)] += count
    result.facts += [
        ('parameters', f'{num_parameters(config):,}'),
        ('in the file', ', '.join(f'{name} {count:,}' for name, count in by_group.items())),
        (
            'bytes',
            ', '.join(
                f'{name} {count * _BYTES.get(name, 0):,}' for name, count in by_type.items()
            ),
        ),
        ('tensors', f'{len(weights)} used, of {len(expected)} known'),
    ]


def _statistics(normaliser: Normaliser) -> str:
    low, high = normaliser.low, normaliser.high
    return (
        f'{normaliser.mode.value}, {len(low)} values, '
        f'{low.min():.4g}..{low.max():.4g} and {high.min():.4g}..{high.max():.4g}'
    )
