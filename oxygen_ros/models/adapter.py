# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters of the language layers, from a folder in PEFT's format.

y = x W + (alpha / r) (x A^T) B^T, Hu et al. 2021; with use_rslora alpha / sqrt(r). They act on
tokens of text requests alone, so that prefix and actions stay the base model's, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
import math
from pathlib import Path
import re

from safetensors import SafetensorError
from safetensors.torch import load_file
import torch
from torch import Tensor

from .config_file import read_object
from .errors import CheckpointError
from .layers import LayerAdapter, LowRank
from .vla_config import VLAConfig

ADAPTER_CONFIG_NAME = 'adapter_config.json'
ADAPTER_WEIGHTS_NAME = 'adapter_model.safetensors'
_NAME = re.compile(
    r'.*language_model\.(?:model\.)?layers\.(\d+)\.(?:self_attn|mlp)\.'
    r'([qkvo]|gate|up|down)_proj\.lora_([AB])(?:\.default)?\.weight'
    r'|.*text_model\.layers\.(\d+)\.(?:self_attn|mlp)\.'
    r'([qkvo]|gate|up|down)_proj\.lora_([AB])(?:\.default)?\.weight'
)
_UNSUPPORTED = ('use_dora', 'modules_to_save', 'rank_pattern', 'alpha_pattern', 'lora_bias')


def load_adapter(
    folder: Path, config: VLAConfig, device: torch.device, dtype: torch.dtype
) -> list[LayerAdapter | None]:
    """Read an adapter; one entry a language layer, None where nothing is adapted.

    :raises CheckpointError: it is no LoRA, adapts something else than language layers, or a
        matrix does not fit.
    """
    settings = read_object(folder / ADAPTER_CONFIG_NAME)
    if settings.get('peft_type') != 'LORA':
        raise CheckpointError(
            f'{folder}: peft_type: expected LORA, got {settings.get("peft_type")!r}'
        )
    for key in _UNSUPPORTED:
        if settings.get(key):
            raise CheckpointError(f'{folder}: {key}: expected none, got {settings[key]!r}')
    if settings.get('bias', 'none') != 'none':
        raise CheckpointError(f'{folder}: bias: expected none, got {settings["bias"]!r}')
    try:
        rank, alpha = int(settings['r']), float(settings['lora_alpha'])
        tensors = load_file(folder / ADAPTER_WEIGHTS_NAME)
    except (KeyError, TypeError, ValueError, OSError, SafetensorError) as error:
        raise CheckpointError(
            f'{folder}: expected r, lora_alpha and a whole {ADAPTER_WEIGHTS_NAME}, got: {error!r}'
        ) from error
    scale = alpha / (math.sqrt(rank) if settings.get('use_rslora') else rank)
    pairs = _pairs(folder, tensors, config, rank)
    return [
        _layer(pairs.get(index, {}), config, scale, device, dtype)
        for index in range(config.num_layers)
    ]


def _widths(config: VLAConfig) -> dict[str, tuple[int, int]]:
    """Return input and output width of each projection."""
    shape = config.language
    query, kv = (heads * shape.head_dim for heads in (shape.num_heads, shape.num_kv_heads))
    return {
        'q': (shape.width, query),
        'k': (shape.width, kv),
        'v': (shape.width, kv),
        'o': (query, shape.width),
        'gate': (shape.width, shape.mlp_width),
        'up': (shape.width, shape.mlp_width),
        'down': (shape.mlp_width, shape.width),
    }


def _pairs(
    folder: Path, tensors: Mapping[str, Tensor], config: VLAConfig, rank: int
) -> dict[int, dict[str, dict[str, Tensor]]]:
    """Sort matrices by layer, projection and A or B; list all that do not fit in one error."""
    widths = _widths(config)
    found: dict[int, dict[str, dict[str, Tensor]]] = {}
    misfits = []
    for name, tensor in tensors.items():
        match = _NAME.fullmatch(name)
        if match is None:
            misfits.append(f'{name}: expected a projection of a language layer')
            continue
        layer, projection, part = (group for group in match.groups() if group is not None)
        expected = (rank, widths[projection][0]) if part == 'A' else (widths[projection][1], rank)
        if int(layer) >= config.num_layers or tuple(tensor.shape) != expected:
            misfits.append(
                f'{name}: expected one of {config.num_layers} layers and shape '
                f'{list(expected)}, got {list(tensor.shape)}'
            )
        elif not tensor.isfinite().all():
            misfits.append(f'{name}: expected finite numbers')
        else:
            found.setdefault(int(layer), {}).setdefault(projection, {})[part] = tensor
    misfits += [
        f'layer {layer}, {projection}: expected lora_A and lora_B'
        for layer, projections in found.items()
        for projection, parts in projections.items()
        if len(parts) != 2
    ]
    if misfits or not found:
        raise CheckpointError(
            f'{folder}: adapter does not fit the model: '
            + ('; '.join(misfits) or 'it holds no matrix')
        )
    return found


def _layer(
    pairs: Mapping[str, Mapping[str, Tensor]],
    config: VLAConfig,
    scale: float,
    device: torch.device,
    dtype: torch.dtype,
) -> LayerAdapter | None:
    if not pairs:
        return None
    widths = _widths(config)

    def fused(*names: str) -> LowRank | None:
        """Join the adapters of fused projections: A side by side, B along the diagonal."""
        present = [name for name in names if name in pairs]
        if not present:
            return None
        rank = pairs[present[0]]['A'].shape[0]
        a = torch.cat([pairs[name]['A'].t() for name in present], 1)
        b = torch.zeros(rank * len(present), sum(widths[name][1] for name in names))
        column = row = 0
        for name in names:
            width = widths[name][1]
            if name in pairs:
                b[row : row + rank, column : column + width] = pairs[name]['B'].t() * scale
                row += rank
            column += width
        return LowRank(a.to(device, dtype), b.to(device, dtype))

    return LayerAdapter(fused('q', 'k', 'v'), fused('o'), fused('gate', 'up'), fused('down'))
