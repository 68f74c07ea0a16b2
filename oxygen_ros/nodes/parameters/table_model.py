# SPDX-License-Identifier: Apache-2.0
"""Parameters of the model."""

from __future__ import annotations

from .spec import ParameterSpec

MODEL: tuple[ParameterSpec, ...] = (
    ParameterSpec('model.name', 'tiny', 'Model by name, where there is no checkpoint'),
    ParameterSpec(
        'model.checkpoint',
        '',
        'Folder of a pi0.5, pi0 or SmolVLA checkpoint; empty: a model by name. It must '
        'fit cameras and joints, and says sizes, scope and steps itself',
    ),
    ParameterSpec(
        'model.adapter', '', 'Folder in the format of PEFT with a LoRA for text alone; empty: none'
    ),
    ParameterSpec(
        'model.camera_map',
        [''],
        "Pairs camera=key where a camera has another name than the checkpoint's key",
    ),
    ParameterSpec('model.device', 'auto', 'auto (a GPU where there is one), cpu, cuda or cuda:N'),
    ParameterSpec(
        'model.dtype', 'float32', 'Type of weights and KV cache', choices=('float32', 'bfloat16')
    ),
    ParameterSpec('model.seed', 0, 'Seed of random weights', low=0),
    ParameterSpec(
        'model.image_px',
        112,
        "Side of the vision tower's input (tiny model); a multiple of 14",
        'px',
        14,
        1120,
    ),
    ParameterSpec('model.action_dt_s', 0.02, 'Time between two steps of a chunk', 's', 0.001, 1.0),
    ParameterSpec(
        'model.prefix_scope',
        'observation',
        'What the shared prefix holds',
        choices=('observation', 'observation+prompt'),
    ),
    ParameterSpec(
        'model.num_kv_heads', 1, 'Key and value heads of the tiny model', low=1, high=16
    ),
    ParameterSpec(
        'model.num_denoising_steps', 5, 'Euler steps of an action pass', low=1, high=100
    ),
    ParameterSpec(
        'model.compile',
        False,
        'Compile vision tower and denoising step (torch.compile): configuring takes up '
        'to minutes longer; where it fails they run as without',
    ),
    ParameterSpec(
        'model.cuda_graphs',
        False,
        'Replay vision tower, language layers and denoising steps as CUDA graphs; '
        'without a CUDA device, or where capturing fails, they run as without. '
        'Best together with compile',
    ),
)
