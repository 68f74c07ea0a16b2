# SPDX-License-Identifier: Apache-2.0
"""Small checkpoints, written once a session."""

from __future__ import annotations

from functools import cache
import json
from pathlib import Path
import tempfile
from typing import Any

from safetensors.torch import save_file
import torch

from oxygen_ros.models.checkpoint import load_checkpoint
from oxygen_ros.models.flow_vla import FlowVLA
from oxygen_ros.models.make_checkpoint import small_config, write_checkpoint
from oxygen_ros.models.vla_config import Family

CAMERAS = ('camera_0', 'camera_1', 'camera_2')
_ROOT = tempfile.TemporaryDirectory()


@cache
def small_folder(family: str) -> Path:
    """Return a small checkpoint of a family; nobody writes to it."""
    folder = Path(_ROOT.name) / family
    write_checkpoint(folder, small_config(Family(family), CAMERAS, 7))
    return folder


@cache
def small_model(family: str, with_adapter: bool = False) -> FlowVLA:
    """Return its model, loaded once."""
    adapter = adapter_folder() if with_adapter else None
    return load_checkpoint(small_folder(family), adapter=adapter)


@cache
def adapter_folder() -> Path:
    """Return a LoRA of rank 4 for the small pi0.5, in PEFT's format."""
    folder = Path(_ROOT.name) / 'adapter'
    folder.mkdir()
    generator = torch.Generator().manual_seed(1)
    sizes = {
        'self_attn.q_proj': (64, 64),
        'self_attn.v_proj': (64, 16),
        'self_attn.o_proj': (64, 64),
        'mlp.up_proj': (64, 128),
        'mlp.down_proj': (128, 64),
    }
    outer = 'base_model.model.paligemma_with_expert.paligemma.model.language_model.layers'
    tensors = {}
    for layer in range(4):
        for name, (width_in, width_out) in sizes.items():
            prefix = f'{outer}.{layer}.{name}'
            tensors[f'{prefix}.lora_A.weight'] = torch.randn(4, width_in, generator=generator)
            tensors[f'{prefix}.lora_B.weight'] = torch.randn(width_out, 4, generator=generator)
    save_file(tensors, folder / 'adapter_model.safetensors')
    write_json(
        folder / 'adapter_config.json',
        {
            'peft_type': 'LORA',
            'r': 4,
            'lora_alpha': 0.4,
            'bias': 'none',
            'target_modules': sorted(name.rpartition('.')[2] for name in sizes),
        },
    )
    return folder


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a JSON object."""
    path.write_text(json.dumps(values))
