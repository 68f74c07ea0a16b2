# SPDX-License-Identifier: Apache-2.0
"""The action expert without adaRMS (pi0): the flow time enters with the actions.

openpi `models/pi0.py`, `embed_suffix`: token = W2 silu(W1 [action; emb(t)] + b1) + b2. The part of
W1 that multiplies the time depends on the step alone and is computed once per schedule.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ..engine.model import Attend
from .flow_matching import euler_times, time_embedding
from .layers import DecoderLayer, LayerShape, load_norm, RopeRows
from .vla_config import VLAConfig
from .weights import WeightReader


class ActionTimeMLP:
    """Noisy actions and a step of the schedule to tokens of the expert."""

    def __init__(self, reader: WeightReader, config: VLAConfig) -> None:
        """:param reader: the scope that holds action_in_proj and action_time_mlp_*."""
        width, dim = config.expert.width, config.padded_action_dim
        self._in = reader.take('action_in_proj.weight', width, dim).t()
        self._in_bias = reader.take('action_in_proj.bias', width)
        both = reader.take('action_time_mlp_in.weight', width, 2 * width, dtype=torch.float32)
        bias = reader.take('action_time_mlp_in.bias', width, dtype=torch.float32)
        times = time_embedding(
            euler_times(config.num_denoising_steps), width, config.min_period, config.max_period
        ).to(reader.device)
        self._action = both[:, :width].to(reader.dtype).contiguous().t()
        self._time = functional.linear(times, both[:, width:], bias).to(reader.dtype)
        self._out = reader.take('action_time_mlp_out.weight', width, width).t()
        self._out_bias = reader.take('action_time_mlp_out.bias', width)

    def __call__(self, actions: Tensor, step: int) -> Tensor:
        """Embed actions [action_horizon, padded_action_dim] -> [action_horizon, width]."""
        embedded = torch.addmm(self._in_bias, actions, self._in)
        mixed = functional.silu(torch.addmm(self._time[step], embedded, self._action))
        return torch.addmm(self._out_bias, mixed, self._out)


class PlainExpert:
    """Layers and final norm with plain RMSNorm; holds no K/V."""

    def __init__(self, reader: WeightReader, shape: LayerShape, num_layers: int) -> None:
        self._layers = [
            DecoderLayer(reader.scope(f'layers.{i}.'), shape, unit_offset=True)
            for i in range(num_layers)
        ]
        self._norm = load_norm(reader, 'norm.weight', shape, unit_offset=True)

    def __call__(self, hidden: Tensor, rope: RopeRows, attend: Attend) -> Tensor:
        """Run all layers and the final norm: hidden [num_tokens, width] -> the same."""
        for i, layer in enumerate(self._layers):
            hidden = layer(i, hidden, rope, attend)
        return self._norm(hidden)
