# SPDX-License-Identifier: Apache-2.0
"""Models by name, and what a wrong option says."""

from __future__ import annotations

import pytest
import torch

from oxygen_ros.engine.spec import PrefixScope
from oxygen_ros.models.options import MODEL_NAMES, ModelOptions
from oxygen_ros.models.registry import create_model


def test_options_reach_the_spec() -> None:
    model = create_model(
        'tiny',
        num_cameras=2,
        num_joints=14,
        action_dt_s=0.05,
        device='cpu',
        prefix_scope='observation+prompt',
        num_kv_heads=2,
    )
    spec = model.spec
    assert (spec.num_cameras, spec.action_dim, spec.action_dt_s) == (2, 14, 0.05)
    assert spec.prefix_scope is PrefixScope.OBSERVATION_PROMPT and spec.num_kv_heads == 2
    assert model.device == torch.device('cpu') and model.dtype == torch.float32
    assert 'tiny' in MODEL_NAMES


@pytest.mark.parametrize(
    'options, message',
    [
        ({'num_camera': 2}, 'model options: expected num_cameras, .* got num_camera'),
        ({'num_cameras': 5}, 'cameras: expected 1 to 4, got 5'),
        ({'num_joints': 0}, 'action_dim: expected at least 1, got 0'),
        ({'action_dt_s': 0.0}, 'model.action_dt_s: expected 0.001 to 1, got 0'),
        ({'num_kv_heads': 3}, 'model.num_kv_heads: expected a divisor of 4, got 3'),
        ({'dtype': 'int8'}, "model.dtype: expected one of float32, bfloat16, got 'int8'"),
        ({'device': 'tpu0'}, 'model.device: expected auto, cpu or cuda, got tpu0'),
        ({'prefix_scope': 'all'}, "model.prefix_scope: expected one of observation, .* got 'all'"),
        ({'num_denoising_steps': 0}, 'model.num_denoising_steps: expected 1 to 100, got 0'),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_model('tiny', **options)


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match='model: expected one of tiny.*, got big'):
        create_model('big')


@pytest.mark.skipif(torch.cuda.is_available(), reason='there is a CUDA device')
def test_cuda_is_refused_where_there_is_none() -> None:
    assert ModelOptions().torch_device() == torch.device('cpu')
    with pytest.raises(ValueError, match='device: expected a usable CUDA device'):
        ModelOptions(device='cuda')
