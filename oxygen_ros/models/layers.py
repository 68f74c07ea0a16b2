# SPDX-License-Identifier: Apache-2.0
"""Transformer layers of the Mixture-of-Transformers families: RMSNorm, RoPE, gated MLP, q/k/v.

Formulas: Gemma as in openpi `models/gemma.py` (fp32 statistics, eps 1e-6, half-split RoPE with
base 10,000, tanh-GELU gating, no biases). Attention is not here: each layer gets `attend`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..engine.model import Attend
from .weights import WeightReader

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    'gelu_tanh': partial(functional.gelu, approximate='tanh'),
    'silu': functional.silu,
}


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Sizes of one expert's layers; all experts share heads and head_dim."""

    width: int
    mlp_width: int
    num_heads: int  # query heads
    num_kv_heads: int
    head_dim: int
    activation: str = 'gelu_tanh'
    eps: float = 1e-6


class Modulation(NamedTuple):
    """What adaRMS does at one norm: `norm(x) * scale + shift`, then `x + gate * branch`."""

    scale: Tensor  # [width], the 1 + of pi0.5 included
    shift: Tensor  # [width]
    gate: Tensor  # [width]


class RopeRows(NamedTuple):
    """Rotation of some positions, broadcast over heads."""

    cos: Tensor  # [num_tokens, 1, head_dim]
    sin: Tensor  # [num_tokens, 1, head_dim], first half negated


class Rope:
    """Half-split rotary embedding, as a table indexed by position."""

    def __init__(
        self, head_dim: int, max_positions: int, device: torch.device, base: float = 10_000.0
    ) -> None:
        exponent = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        angle = torch.arange(max_positions, dtype=torch.float32)[:, None] / base**exponent
        cos, sin = angle.cos(), angle.sin()
        table = torch.stack((torch.cat((cos, cos), 1), torch.cat((-sin, sin), 1)), 1)
        self._table = table.to(device)  # [max_positions, 2, head_dim] float32

    def rows(self, positions: Tensor) -> RopeRows:
        """Look up positions [num_tokens] int64; each must be below max_positions."""
        rows = self._table.index_select(0, positions)
        return RopeRows(rows.narrow(1, 0, 1), rows.narrow(1, 1, 1))


def apply_rope(x: Tensor, rope: RopeRows) -> Tensor:
    """Rotate x [num_tokens, num_heads, head_dim]; computed in float32, returned as x's dtype."""
    rolled = x.roll(x.shape[-1] // 2, -1)
    return torch.addcmul(x * rope.cos, rolled, rope.sin).to(x.dtype)


class RMSNorm:
    """`x / sqrt(mean(x^2) + eps)`, statistics in float32."""

    def __init__(
        self, width: int, eps: float, device: torch.device, weight: Tensor | None = None
    ) -> None:
        """:param weight: factor [width]; for Gemma one plus the stored weight; None: 1."""
        self._weight = weight
        self._eps = torch.tensor(eps, dtype=torch.float32, device=device)
        self._inverse_width = 1.0 / width
        # One kernel on CUDA; on a CPU it takes longer than the four operations below.
        self._fused = (
            partial(functional.rms_norm, normalized_shape=(width,), eps=eps)
            if device.type == 'cuda'
            else None
        )

    def _normalised(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return x normalised and multiplied by a weight, [num_tokens, width] float32."""
        if self._fused is not None:
            return self._fused(x.to(torch.float32), weight=weight)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        inverse = torch.addcmul(self._eps, norm, norm, value=self._inverse_width).rsqrt_()
        y = x * inverse
        return y if weight is None else y.mul_(weight)

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise x [num_tokens, width]."""
        return self._normalised(x, self._weight).to(x.dtype)

    def modulated(self, x: Tensor, modulation: Modulation) -> Tensor:
        """Normalise x [num_tokens, width] with the scale and shift of adaRMS."""
        y = torch.addcmul(modulation.shift, self._normalised(x), modulation.scale)
        return y.to(x.dtype)


class LowRank(NamedTuple):
    """A low-rank addition to a product: `y + x a b`."""

    a: Tensor  # [in, rank]
    b: Tensor  # [rank, out], scale included

    def add(self, y: Tensor, x: Tensor) -> None:
        """Add to y [num_tokens, out] what it makes of x [num_tokens, in]."""
        y.addmm_(torch.mm(x, self.a), self.b)


class LayerAdapter(NamedTuple):
    """The low-rank additions of one layer; None: not adapted."""

    qkv: LowRank | None
    output: LowRank | None
    gate_up: LowRank | None
    down: LowRank | None


class Projections:
    """Fused weights of one layer: q, k and v in one product, gate and up in another.

    Stored as [in, out] views, so that every product is one `mm` or `addmm`.
    """

    def __init__(self, reader: WeightReader, shape: LayerShape) -> None:
        width, mlp_width = shape.width, shape.mlp_width
        query_width = shape.num_heads * shape.head_dim
        kv_width = shape.num_kv_heads * shape.head_dim
        self._qkv = reader.fuse(
            [f'self_attn.{name}_proj.weight' for name in 'qkv'],
            (query_width, kv_width, kv_width),
            width,
        ).t()
        self.output = reader.take('self_attn.o_proj.weight', width, query_width).t()
        self._gate_up = reader.fuse(
            ('mlp.gate_proj.weight', 'mlp.up_proj.weight'), (mlp_width, mlp_width), width
        ).t()
        self.down = reader.take('mlp.down_proj.weight', width, mlp_width).t()
        self._activation = ACTIVATIONS[shape.activation]
        self._qkv_view = (-1, shape.num_heads + 2 * shape.num_kv_heads, shape.head_dim)
        self._rotated_and_values = (shape.num_heads + shape.num_kv_heads, shape.num_kv_heads)
        self._queries_and_keys = (shape.num_heads, shape.num_kv_heads)
        self._kv = self._qkv[:, query_width:]  # a view: [width, 2 * num_kv_heads * head_dim]
        self._kv_view = (-1, 2 * shape.num_kv_heads, shape.head_dim)
        self._keys_and_values = (shape.num_kv_heads, shape.num_kv_heads)

    def attention(
        self,
        layer: int,
        normed: Tensor,
        rope: RopeRows,
        attend: Attend,
        adapter: LowRank | None = None,
    ) -> Tensor:
        """Attention without the output product: [n, width] -> [n, num_heads * head_dim].

        :param adapter: of the fused q, k and v.
        """
        product = torch.mm(normed, self._qkv)
        if adapter is not None:
            adapter.add(product, normed)
        qkv = product.view(self._qkv_view)
        rotated, values = qkv.split_with_sizes(self._rotated_and_values, 1)
        queries, keys = apply_rope(rotated, rope).split_with_sizes(self._queries_and_keys, 1)
        return attend(layer, queries, keys, values)

    def keys_values(self, normed: Tensor, rope: RopeRows) -> tuple[Tensor, Tensor]:
        """[n, width] -> keys after RoPE and values, each [n, num_kv_heads, head_dim]."""
        product = torch.mm(normed, self._kv).view(self._kv_view)
        keys, values = product.split_with_sizes(self._keys_and_values, 1)
        return apply_rope(keys, rope), values

    def gated(self, normed: Tensor, adapter: LowRank | None = None) -> Tensor:
        """MLP without the down product: [n, width] -> [n, mlp_width].

        :param adapter: of the fused gate and up.
        """
        product = torch.mm(normed, self._gate_up)
        if adapter is not None:
            adapter.add(product, normed)
        gate, up = product.chunk(2, -1)
        return self._activation(gate).mul_(up)


class DecoderLayer:
    """One layer of a language expert with plain RMSNorm (Gemma, SmolLM)."""

    def __init__(self, reader: WeightReader, shape: LayerShape, unit_offset: bool) -> None:
        """:param unit_offset: the stored norm weights lack their one (Gemma)."""
        self._projections = Projections(reader, shape)
        self._input_norm = load_norm(reader, 'input_layernorm.weight', shape, unit_offset)
        self._mlp_norm = load_norm(reader, 'post_attention_layernorm.weight', shape, unit_offset)

    def __call__(
        self,
        layer: int,
        hidden: Tensor,
        rope: RopeRows,
        attend: Attend,
        adapter: LayerAdapter | None = None,
    ) -> Tensor:
        """Hidden [num_tokens, width] -> the same; the argument is left as it was."""
        if adapter is not None:
            return self._adapted(layer, hidden, rope, attend, adapter)
        weights = self._projections
        attended = weights.attention(layer, self._input_norm(hidden), rope, attend)
        hidden = torch.addmm(hidden, attended, weights.output)
        return hidden.addmm_(weights.gated(self._mlp_norm(hidden)), weights.down)

    def keys_values(self, hidden: Tensor, rope: RopeRows) -> tuple[Tensor, Tensor]:
        """Hidden [num_tokens, width] -> what the layer would leave in the cache, and no more."""
        return self._projections.keys_values(self._input_norm(hidden), rope)

    def _adapted(
        self, layer: int, hidden: Tensor, rope: RopeRows, attend: Attend, adapter: LayerAdapter
    ) -> Tensor:
        weights = self._projections
        attended = weights.attention(layer, self._input_norm(hidden), rope, attend, adapter.qkv)
        hidden = torch.addmm(hidden, attended, weights.output)
        if adapter.output is not None:
            adapter.output.add(hidden, attended)
        gated = weights.gated(self._mlp_norm(hidden), adapter.gate_up)
        hidden.addmm_(gated, weights.down)
        if adapter.down is not None:
            adapter.down.add(hidden, gated)
        return hidden


class ModulatedLayer:
    """One layer of an action expert with adaRMS (pi0.5)."""

    def __init__(self, reader: WeightReader, shape: LayerShape) -> None:
        self._projections = Projections(reader, shape)
        self._norm = RMSNorm(shape.width, shape.eps, reader.device)

    def __call__(
        self,
        layer: int,
        hidden: Tensor,
        attention: Modulation,
        mlp: Modulation,
        rope: RopeRows,
        attend: Attend,
    ) -> Tensor:
        """Hidden [num_tokens, width] -> the same; the argument is left as it was."""
        weights, norm = self._projections, self._norm
        attended = weights.attention(layer, norm.modulated(hidden, attention), rope, attend)
        hidden = torch.addcmul(hidden, torch.mm(attended, weights.output), attention.gate)
        branch = torch.mm(weights.gated(norm.modulated(hidden, mlp)), weights.down)
        return hidden.addcmul_(branch, mlp.gate)


def load_norm(reader: WeightReader, name: str, shape: LayerShape, unit_offset: bool) -> RMSNorm:
    """Load an RMSNorm with weights [width], kept in float32 whatever the model's dtype."""
    weight = reader.take(name, shape.width, dtype=torch.float32)
    return RMSNorm(shape.width, shape.eps, reader.device, weight + 1.0 if unit_offset else weight)
