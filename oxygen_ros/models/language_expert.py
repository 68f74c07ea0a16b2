# SPDX-License-Identifier: Apache-2.0
"""The language expert: token embedding, decoder layers, final norm and output head."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..engine.model import Attend
from .layers import DecoderLayer, LayerAdapter, LayerShape, load_norm, Rope
from .weights import WeightReader


class LanguageExpert:
    """A decoder without memory; weights only.

    The factor sqrt(width) on text embeddings (Gemma) is multiplied at look-up, so that table and
    output head can be one tensor.
    """

    def __init__(
        self,
        reader: WeightReader,
        head: WeightReader,
        shape: LayerShape,
        num_layers: int,
        vocab_size: int,
        rope: Rope,
        unit_offset: bool = True,
        may_be_tied: bool = False,
    ) -> None:
        """Load all layers.

        :param head: the scope that holds lm_head.weight [vocab_size, width].
        :param unit_offset: the stored norm weights lack their one (Gemma).
        :param may_be_tied: a file may hold embedding or head alone, for both.
        """
        self._embedding, self._head = _take_tables(
            reader, head, (vocab_size, shape.width), may_be_tied
        )
        self._scale = math.sqrt(shape.width)
        self._layers = [
            DecoderLayer(reader.scope(f'layers.{i}.'), shape, unit_offset)
            for i in range(num_layers)
        ]
        self._norm = load_norm(reader, 'norm.weight', shape, unit_offset)
        self._rope = rope

    def embed(self, tokens: Tensor) -> Tensor:
        """[num_tokens] int64 -> [num_tokens, width], scaled."""
        return self._embedding.index_select(0, tokens).mul_(self._scale)

    def run_layer(
        self,
        layer: int,
        hidden: Tensor,
        positions: Tensor,
        attend: Attend,
        adapter: LayerAdapter | None = None,
    ) -> Tensor:
        """Hidden [num_tokens, width] at positions [num_tokens] int64 -> the same shape."""
        return self._layers[layer](layer, hidden, self._rope.rows(positions), attend, adapter)

    def keys_values(self, layer: int, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Keys after RoPE and values of a layer, each [num_tokens, num_kv_heads, head_dim]."""
        return self._layers[layer].keys_values(hidden, self._rope.rows(positions))

    def logits(self, hidden: Tensor) -> Tensor:
        """[num_tokens, width] -> [num_tokens, vocab_size] float32."""
        return torch.mm(self._norm(hidden), self._head).to(torch.float32)


def _take_tables(
    reader: WeightReader, head: WeightReader, shape: tuple[int, int], may_be_tied: bool
) -> tuple[Tensor, Tensor]:
    """Return embedding [vocab_size, width] and head [width, vocab_size], of one memory if tied.

    PaliGemma's two are one tensor: files of transformers hold the embedding alone, several pi0
    and pi0.5 files the head alone, others both.
    """
    here, there = 'embed_tokens.weight', 'lm_head.weight'
    has_embedding, has_head = reader.has(here), head.has(there)
    if may_be_tied and has_head and not has_embedding:
        table = head.take(there, *shape)
        return table, table.t()
    table = reader.take(here, *shape)
    if may_be_tied and (not has_head or (has_embedding and reader.is_equal(here, head, there))):
        head.skip(there)
        return table, table.t()
    return table, head.take(there, *shape).t()
