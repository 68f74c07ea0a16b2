# SPDX-License-Identifier: Apache-2.0
"""The action pass as it would be without each optimisation: the same numbers, in more steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from oxygen_ros.bench.workbench import Workbench
from oxygen_ros.engine.attention import MaskKind, Span
from oxygen_ros.engine.model import Attend
from oxygen_ros.models.action_expert import ActionExpert
from oxygen_ros.models.flow_matching import euler_times, time_embedding
from oxygen_ros.models.layers import (
    apply_rope,
    LowRank,
    Modulation,
    Projections,
    RMSNorm,
    RopeRows,
)
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig
from oxygen_ros.models.tiny_weights import tiny_weights

_EXPERT = 'action_expert.'


def separate_products(config: TinyConfig) -> TinyModel:
    """Five products a layer where two serve."""
    model = TinyModel(config)
    for layer in model._expert._layers:
        layer._projections = _Separate(layer._projections)
    return model


def plain_norms(config: TinyConfig) -> TinyModel:
    """Mean of squares, root, quotient, scale and shift one after the other."""
    model = TinyModel(config)
    expert = model._expert
    expert._norm = _PlainNorm(expert._norm)
    for layer in expert._layers:
        layer._norm = _PlainNorm(layer._norm)
    return model


def conditioned_in_steps(config: TinyConfig) -> TinyModel:
    """The time network runs in every step."""
    model = TinyModel(config)
    model._expert = _Conditioned(model._expert, config)
    return model


def plan_every_step(bench: Workbench) -> Workbench:
    """Attention is planned at the first layer of every step."""
    ready = bench.engine.action.ready
    assert ready is not None
    runner = bench.engine.action._runner
    prefix = ready.context.prefix
    num_tokens = runner.spec.action_suffix_tokens
    blocks = ready.context.writable_blocks(num_tokens)
    num_prompt = ready.position - prefix.num_tokens

    planned: list[Attend] = []

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if layer == 0:
            planned[:] = [
                runner.attend(
                    runner.plan(
                        [
                            Span(
                                num_tokens=num_tokens,
                                prefix_block=prefix.first_block,
                                prefix_tokens=prefix.num_tokens,
                                block_table=blocks,
                                num_own=num_prompt,
                                mask=MaskKind.BIDIRECTIONAL,
                            )
                        ]
                    )
                )
            ]
        return planned[0](layer, q, k, v)

    ready.attend = attend
    return bench


class _Separate(Projections):
    """The fused weights cut apart again."""

    def __init__(self, fused: Projections) -> None:
        self.__dict__.update(fused.__dict__)
        heads, kv_heads = self._queries_and_keys
        head_dim = self._qkv_view[2]
        sizes = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim]
        self._q, self._k, self._v = (part.contiguous() for part in self._qkv.split(sizes, 1))
        self._gate, self._up = (part.contiguous() for part in self._gate_up.chunk(2, 1))

    def attention(
        self,
        layer: int,
        normed: Tensor,
        rope: RopeRows,
        attend: Attend,
        adapter: LowRank | None = None,
    ) -> Tensor:
        head_dim = self._qkv_view[2]
        queries, keys, values = (
            torch.mm(normed, weight).view(len(normed), -1, head_dim)
            for weight in (self._q, self._k, self._v)
        )
        return attend(layer, apply_rope(queries, rope), apply_rope(keys, rope), values)

    def gated(self, normed: Tensor, adapter: LowRank | None = None) -> Tensor:
        return self._activation(torch.mm(normed, self._gate)) * torch.mm(normed, self._up)


class _PlainNorm(RMSNorm):
    def __init__(self, norm: RMSNorm) -> None:
        self.__dict__.update(norm.__dict__)

    def _normalised(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        wide = x.to(torch.float32)
        y = wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + self._eps)
        return y if weight is None else y * weight

    def modulated(self, x: Tensor, modulation: Modulation) -> Tensor:
        return (self._normalised(x) * modulation.scale + modulation.shift).to(x.dtype)


class _Conditioned(ActionExpert):
    """Scale, shift and gate of every norm computed from the time in every step."""

    def __init__(self, expert: ActionExpert, config: TinyConfig) -> None:
        self.__dict__.update(expert.__dict__)
        self._weights = tiny_weights(config)
        self._num_layers = config.num_layers
        self._times = time_embedding(euler_times(config.num_denoising_steps), config.expert_width)

    def __call__(self, hidden: Tensor, step: int, rope: RopeRows, attend: Attend) -> Tensor:
        condition = self._times[step : step + 1]
        for name in ('time_mlp_in', 'time_mlp_out'):
            condition = functional.silu(self._linear(name, condition))
        for i, layer in enumerate(self._layers):
            attention, mlp = (
                self._at_norm(f'{_EXPERT}layers.{i}.{name}_layernorm', condition)
                for name in ('input', 'post_attention')
            )
            hidden = layer(i, hidden, attention, mlp, rope, attend)
        return self._norm.modulated(hidden, self._at_norm(f'{_EXPERT}norm', condition))

    def _at_norm(self, name: str, condition: Tensor) -> Modulation:
        scale, shift, gate = self._linear(f'{name}.dense', condition)[0].chunk(3)
        return Modulation(scale + 1.0, shift, gate)

    def _linear(self, name: str, x: Tensor) -> Any:
        return functional.linear(x, self._weights[f'{name}.weight'], self._weights[f'{name}.bias'])
