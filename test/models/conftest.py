# SPDX-License-Identifier: Apache-2.0
"""Models and images for the model tests, built once."""

from __future__ import annotations

from functools import cache

from dense_attend import camera_frame
import pytest
import torch
from torch import Tensor

from oxygen_ros.engine.spec import PrefixScope
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig


@cache
def tiny_model(scope: PrefixScope = PrefixScope.OBSERVATION, num_kv_heads: int = 1) -> TinyModel:
    """Build each variant once; a model keeps nothing between calls."""
    return TinyModel(TinyConfig(prefix_scope=scope, num_kv_heads=num_kv_heads))


@pytest.fixture
def model() -> TinyModel:
    """Return the tiny model with its defaults."""
    return tiny_model()


@pytest.fixture(
    params=[(scope, heads) for scope in PrefixScope for heads in (1, 2)],
    ids=lambda variant: f'{variant[0].value}-kv{variant[1]}',
)
def any_model(request: pytest.FixtureRequest) -> TinyModel:
    """Return each variant of the tiny model: both prefix scopes, one and two KV heads."""
    return tiny_model(*request.param)


@pytest.fixture(scope='session')
def images() -> list[Tensor]:
    """Return three preprocessed camera images."""
    with torch.inference_mode():
        return [tiny_model().preprocess(camera_frame(seed)) for seed in range(3)]
