# SPDX-License-Identifier: Apache-2.0
"""SmolVLA's action expert: even layers attend to prefix and suffix, odd ones to the prefix alone.

LeRobot `policies/smolvla/smolvlm_with_expert.py`. An odd layer projects the language model's
cached K and V, K after RoPE, with weights of its own, and its queries count positions from 0. The
projected prefix is the same in all steps and passes, so it is made once a prefix; the state
token's row is new in each pass.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ..engine.model import Attend, PrefixKV
from .layers import ACTIVATIONS, apply_rope, DecoderLayer, LayerShape, load_norm, RopeRows
from .weights import WeightReader

CrossKV = list[tuple[Tensor, Tensor]]
"""K and V of each odd layer, [prefix and state tokens, num_kv_heads * head_dim]."""


class _CrossLayer:
    """One odd layer."""

    def __init__(self, reader: WeightReader, shape: LayerShape) -> None:
        self._shape = shape
        width, mlp_width = shape.width, shape.mlp_width
        query_width = shape.num_heads * shape.head_dim
        kv_width = shape.num_kv_heads * shape.head_dim
        self._q = reader.take('self_attn.q_proj.weight', query_width, width).t()
        self._k = reader.take('self_attn.k_proj.weight', kv_width, kv_width).t()
        self._v = reader.take('self_attn.v_proj.weight', kv_width, kv_width).t()
        self._output = reader.take('self_attn.o_proj.weight', width, query_width).t()
        self._gate_up = reader.fuse(
            ('mlp.gate_proj.weight', 'mlp.up_proj.weight'), (mlp_width, mlp_width), width
        ).t()
        self._down = reader.take('mlp.down_proj.weight', width, mlp_width).t()
        self._input_norm = load_norm(reader, 'input_layernorm.weight', shape, False)
        self._mlp_norm = load_norm(reader, 'post_attention_layernorm.weight', shape, False)
        self._activation = ACTIVATIONS[shape.activation]

    def project(self, k: Tensor, v: Tensor, out: tuple[Tensor, Tensor]) -> None:
        """Project K and V [num_tokens, num_kv_heads, head_dim] of the language model."""
        torch.mm(k.flatten(1), self._k, out=out[0])
        torch.mm(v.flatten(1), self._v, out=out[1])

    def __call__(self, hidden: Tensor, rope: RopeRows, kv: tuple[Tensor, Tensor]) -> Tensor:
        """Hidden [num_tokens, width] -> the same; rope of positions from 0."""
        shape = self._shape
        num_tokens, heads, groups = len(hidden), shape.num_heads, shape.num_kv_heads
        q = torch.mm(self._input_norm(hidden), self._q).view(num_tokens, heads, shape.head_dim)
        # Heads that share K and V are folded into the query axis: there is no mask to mind.
        q = apply_rope(q, rope).view(num_tokens, groups, -1, shape.head_dim).transpose(0, 1)
        k, v = (x.view(-1, groups, shape.head_dim).transpose(0, 1)[None] for x in kv)
        out = functional.scaled_dot_product_attention(q.flatten(1, 2)[None], k, v)
        out = out.view(groups, num_tokens, -1, shape.head_dim).transpose(0, 1)
        hidden = torch.addmm(hidden, out.reshape(num_tokens, -1), self._output)
        gate, up = torch.mm(self._mlp_norm(hidden), self._gate_up).chunk(2, -1)
        return hidden.addmm_(self._activation(gate).mul_(up), self._down)


class CrossExpert:
    """Layers and final norm of SmolVLA's expert; holds no K/V."""

    def __init__(self, reader: WeightReader, shape: LayerShape, num_layers: int) -> None:
        def load(index: int) -> DecoderLayer | _CrossLayer:
            scope = reader.scope(f'layers.{index}.')
            return _CrossLayer(scope, shape) if index % 2 else DecoderLayer(scope, shape, False)

        self._layers = [load(index) for index in range(num_layers)]
        self._norm = load_norm(reader, 'norm.weight', shape, False)
        self._kv_width = shape.num_kv_heads * shape.head_dim

    def _cross_layers(self) -> list[tuple[int, _CrossLayer]]:
        return [
            (index, layer)
            for index, layer in enumerate(self._layers)
            if isinstance(layer, _CrossLayer)
        ]

    def project_prefix(self, prefix_kv: PrefixKV) -> CrossKV:
        """Project a prefix for all odd layers, with room for the state's row at the end."""
        projected = []
        for index, layer in self._cross_layers():
            k, v = prefix_kv(index)
            both = k.new_empty(2, len(k) + 1, self._kv_width)
            layer.project(k, v, (both[0, :-1], both[1, :-1]))
            projected.append((both[0], both[1]))
        return projected

    def recording(self, cross: CrossKV, attend: Attend) -> Attend:
        """Return `attend` for the state token, which also fills its row of the odd layers."""
        rows = {
            index: (layer, kv)
            for (index, layer), kv in zip(self._cross_layers(), cross, strict=True)
        }

        def record(index: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if index in rows:
                layer, (keys, values) = rows[index]
                layer.project(k, v, (keys[-1:], values[-1:]))
            return attend(index, q, k, v)

        return record

    def __call__(
        self, hidden: Tensor, rope: RopeRows, rope_from_0: RopeRows, cross: CrossKV, attend: Attend
    ) -> Tensor:
        """Run all layers and the final norm: hidden [num_tokens, width] -> the same."""
        projected = iter(cross)
        for index, layer in enumerate(self._layers):
            if isinstance(layer, _CrossLayer):
                hidden = layer(hidden, rope_from_0, next(projected))
            else:
                hidden = layer(index, hidden, rope, attend)
        return self._norm(hidden)
