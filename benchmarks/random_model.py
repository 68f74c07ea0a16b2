# SPDX-License-Identifier: Apache-2.0
"""A real model's sizes with random weights, drawn on the device: to measure without files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
import tempfile

import torch
from torch import Tensor

from oxygen_ros.models.checkpoint import CLASSES
from oxygen_ros.models.config_file import ConfigFile
from oxygen_ros.models.flow_vla import FlowVLA
from oxygen_ros.models.make_checkpoint import draw, write_description
from oxygen_ros.models.read_processing import read_processing
from oxygen_ros.models.tensor_shapes import Shape, tensor_shapes
from oxygen_ros.models.vla_config import Family, VLAConfig

ACTION_DT_S = 0.02


class DrawnWeights(Mapping[str, Tensor]):
    """Tensors of a model under our names, each drawn when it is asked for and then forgotten."""

    def __init__(self, config: VLAConfig, device: torch.device, seed: int) -> None:
        is_tied = config.family is not Family.SMOLVLA
        self._shapes: dict[str, Shape] = tensor_shapes(config, is_tied)
        self._device, self._seed = device, seed

    def __getitem__(self, name: str) -> Tensor:
        return draw(name, self._shapes[name], self._seed, self._device)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes  # without drawing it


def random_model(
    config: VLAConfig,
    device: torch.device | str,
    dtype: torch.dtype,
    seed: int = 0,
    weights: Mapping[str, Tensor] | None = None,
) -> FlowVLA:
    """Return a whole model: random weights, our own byte-level tokenizer and normalisation.

    :param weights: in place of drawn ones, under our names.
    """
    where = torch.device(device)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_description(folder, config)
        processing = read_processing(folder, ConfigFile(folder), config)
    drawn = DrawnWeights(config, where, seed) if weights is None else weights
    return CLASSES[config.family](
        config, drawn, f'random {seed}', where, dtype, ACTION_DT_S, processing
    )
