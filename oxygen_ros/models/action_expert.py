# SPDX-License-Identifier: Apache-2.0
"""The action expert: layers over the language expert's K/V, conditioned on flow time by adaRMS.

pi0.5 in openpi `models/gemma.py` and `models/pi0.py`: cond = silu(W2 silu(W1 emb(t))), and at each
norm (scale, shift, gate) = dense(cond). cond depends on t alone, so the vectors of all steps,
layers and norms are computed here once per schedule and the time network is then dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..engine.model import Attend
from .flow_matching import euler_times, time_embedding
from .layers import LayerShape, ModulatedLayer, Modulation, RMSNorm, RopeRows
from .weights import WeightReader


class _StepModulations(NamedTuple):
    layers: tuple[tuple[Modulation, Modulation], ...]  # attention and MLP norm of each layer
    final: Modulation


class ActionExpert:
    """The expert's layers with the modulations of every denoising step; holds no K/V."""

    def __init__(
        self,
        reader: WeightReader,
        time_mlp: WeightReader,
        shape: LayerShape,
        num_layers: int,
        num_steps: int,
        min_period: float = 4e-3,
        max_period: float = 4.0,
    ) -> None:
        """Load the layers and compute the modulations.

        :param time_mlp: the scope that holds time_mlp_in and time_mlp_out.
        :param min_period: of the time embedding, as max_period.
        """
        self._layers = [
            ModulatedLayer(reader.scope(f'layers.{i}.'), shape) for i in range(num_layers)
        ]
        self._norm = RMSNorm(shape.width, shape.eps, reader.device)
        times = time_embedding(euler_times(num_steps), shape.width, min_period, max_period)
        self._steps = _modulations(reader, time_mlp, shape, num_layers, times)

    def __call__(self, hidden: Tensor, step: int, rope: RopeRows, attend: Attend) -> Tensor:
        """Run one denoising step's layers and final norm: hidden [num_tokens, width] -> same."""
        modulations = self._steps[step]
        for i, layer in enumerate(self._layers):
            hidden = layer(i, hidden, *modulations.layers[i], rope, attend)
        return self._norm.modulated(hidden, modulations.final)


def _modulations(
    reader: WeightReader, time_mlp: WeightReader, shape: LayerShape, num_layers: int, times: Tensor
) -> tuple[_StepModulations, ...]:
    """Compute scale, shift and gate of all steps, layers and norms, in float32.

    :param times: embedded flow times, [num_steps, width].
    """
    width, kind = shape.width, torch.float32
    condition = times.to(reader.device)
    for name in ('time_mlp_in', 'time_mlp_out'):
        condition = functional.silu(
            functional.linear(
                condition,
                time_mlp.take(f'{name}.weight', width, width, dtype=kind),
                time_mlp.take(f'{name}.bias', width, dtype=kind),
            )
        )

    def at_norm(name: str) -> list[Modulation]:
        dense = functional.linear(
            condition,
            reader.take(f'{name}.dense.weight', 3 * width, width, dtype=kind),
            reader.take(f'{name}.dense.bias', 3 * width, dtype=kind),
        )
        scale, shift, gate = dense.chunk(3, 1)
        return [
            Modulation(*vectors)
            for vectors in zip(
                (scale + 1.0).unbind(0),
                shift.contiguous().unbind(0),
                gate.to(reader.dtype).contiguous().unbind(0),
                strict=True,
            )
        ]

    layers = [
        (at_norm(f'layers.{i}.input_layernorm'), at_norm(f'layers.{i}.post_attention_layernorm'))
        for i in range(num_layers)
    ]
    final = at_norm('norm')
    return tuple(
        _StepModulations(tuple((a[step], m[step]) for a, m in layers), final[step])
        for step in range(len(times))
    )
