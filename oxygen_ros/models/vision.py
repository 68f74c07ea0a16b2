# SPDX-License-Identifier: Apache-2.0
"""SigLIP vision tower with its projector into the language width.

openpi `models/siglip.py`: patch convolution plus learned position, pre-LayerNorm layers (eps
1e-6, biases), tanh-GELU MLP, final LayerNorm, no pooling; then one linear map.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

import torch
from torch import Tensor
from torch.nn import functional

from .weights import WeightReader


@dataclass(frozen=True, slots=True)
class VisionShape:
    """Sizes of the tower."""

    image_px: int  # square images
    patch_px: int
    width: int
    mlp_width: int
    num_layers: int
    num_heads: int
    output_width: int  # the language expert's
    eps: float = 1e-6
    shuffle: int = 0  # patches a side that become one token (SmolVLM); 0: every patch is one

    @property
    def num_tokens(self) -> int:
        """Tokens of one image."""
        return self.num_patches // max(self.shuffle, 1) ** 2

    @property
    def num_patches(self) -> int:
        """Patches of one image."""
        return (self.image_px // self.patch_px) ** 2


class _Linear:
    """A product with bias; weights as an [in, out] view."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.weight = weight.t()
        self.bias = bias

    @classmethod
    def load(cls, reader: WeightReader, name: str, out_width: int, in_width: int) -> _Linear:
        return cls(
            reader.take(f'{name}.weight', out_width, in_width),
            reader.take(f'{name}.bias', out_width),
        )

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class _ShuffleProjector:
    """Neighbouring patches joined to one token, then a product without bias.

    transformers `models/smolvlm`: the shuffle x shuffle patches of a square lie row by row in the
    token's values. SmolVLA scales image tokens by sqrt(width), multiplied into the weights here.
    """

    def __init__(self, reader: WeightReader, shape: VisionShape) -> None:
        shuffle = shape.shuffle
        values = shape.width * shuffle**2
        self._weight = (
            reader.take('weight', shape.output_width, values)
            .mul_(math.sqrt(shape.output_width))
            .t()
        )
        side = shape.image_px // shape.patch_px
        self._squares = (side // shuffle, shuffle, side // shuffle, shuffle, shape.width)

    def __call__(self, x: Tensor) -> Tensor:
        squares = x.view(self._squares).transpose(1, 2)
        return torch.mm(squares.reshape(-1, self._weight.shape[0]), self._weight)


class _LayerNorm:
    def __init__(self, reader: WeightReader, name: str, shape: VisionShape) -> None:
        self._shape = (shape.width,)
        self._weight = reader.take(f'{name}.weight', shape.width)
        self._bias = reader.take(f'{name}.bias', shape.width)
        self._eps = shape.eps

    def __call__(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self._shape, self._weight, self._bias, self._eps)


class _EncoderLayer:
    def __init__(self, reader: WeightReader, shape: VisionShape) -> None:
        width = shape.width
        names = [f'self_attn.{name}_proj' for name in 'qkv']
        self._qkv = _Linear(
            reader.fuse([f'{name}.weight' for name in names], (width,) * 3, width),
            torch.cat([reader.take(f'{name}.bias', width) for name in names]),
        )
        self._output = _Linear.load(reader, 'self_attn.out_proj', width, width)
        self._fc1 = _Linear.load(reader, 'mlp.fc1', shape.mlp_width, width)
        self._fc2 = _Linear.load(reader, 'mlp.fc2', width, shape.mlp_width)
        self._norm1 = _LayerNorm(reader, 'layer_norm1', shape)
        self._norm2 = _LayerNorm(reader, 'layer_norm2', shape)
        self._heads = (-1, 3, shape.num_heads, width // shape.num_heads)

    def __call__(self, x: Tensor) -> Tensor:
        qkv = self._qkv(self._norm1(x)).view(self._heads)  # [tokens, 3, heads, head_dim]
        q, k, v = qkv.permute(1, 2, 0, 3).unsqueeze(1).unbind(0)
        attended = functional.scaled_dot_product_attention(q, k, v)
        x = x + self._output(attended[0].transpose(0, 1).flatten(1))
        inner = functional.gelu(self._fc1(self._norm2(x)), approximate='tanh')
        return x.add_(self._fc2(inner))


class VisionTower:
    """Image to tokens of the language expert; weights only, no state."""

    def __init__(self, reader: WeightReader, projector: WeightReader, shape: VisionShape) -> None:
        """:param projector: the scope that holds the projector."""
        patch_values = 3 * shape.patch_px**2
        embeddings = reader.scope('embeddings.')
        patch = embeddings.take(
            'patch_embedding.weight', shape.width, 3, shape.patch_px, shape.patch_px
        )
        self._patch = patch.reshape(shape.width, patch_values).t()
        position = embeddings.take('position_embedding.weight', shape.num_patches, shape.width)
        self._position = position.add_(embeddings.take('patch_embedding.bias', shape.width))
        self._layers = [
            _EncoderLayer(reader.scope(f'encoder.layers.{i}.'), shape)
            for i in range(shape.num_layers)
        ]
        self._norm = _LayerNorm(reader, 'post_layernorm', shape)
        self._projector = (
            _ShuffleProjector(projector, shape)
            if shape.shuffle
            else _Linear.load(projector, 'linear', shape.output_width, shape.width)
        )
        self._side = shape.image_px // shape.patch_px
        self._patch_px = shape.patch_px

    def __call__(self, image: Tensor) -> Tensor:
        """Encode one image [3, image_px, image_px] in [-1, 1]: -> [tokens, output_width]."""
        side, px = self._side, self._patch_px
        patches = image.view(3, side, px, side, px).permute(1, 3, 0, 2, 4).reshape(side * side, -1)
        x = torch.addmm(self._position, patches, self._patch)
        for layer in self._layers:
            x = layer(x)
        return self._projector(self._norm(x))
