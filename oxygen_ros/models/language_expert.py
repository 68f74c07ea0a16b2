"""The language expert: token embedding, decoder layers, final norm and output head."""
from __future__ import annotations

import math

import torch
from torch import Tensor

from ..engine.model import Attend
from .layers import DecoderLayer, LayerShape, load_norm, Rope
from .weights import WeightReader


class LanguageExpert:
    """A decoder without memory; weights only.

    The factor sqrt(width) on text embeddings (Gemma) is multiplied into the table at load.
    """

    def __init__(self, reader: WeightReader, head: WeightReader, shape: LayerShape,
                 num_layers: int, vocab_size: int, rope: Rope, unit_offset: bool = True) -> None:
        """Load all layers.

        :param head: the scope that holds lm_head.weight [vocab_size, width].
        :param unit_offset: the stored norm weights lack their one (Gemma).
        """
        embedding = reader.take('embed_tokens.weight', vocab_size, shape.width)
        self._embedding = embedding * math.sqrt(shape.width)
        self._layers = [DecoderLayer(reader.scope(f'layers.{i}.'), shape, unit_offset)
                        for i in range(num_layers)]
        self._norm = load_norm(reader, 'norm.weight', shape, unit_offset)
        self._head = head.take('lm_head.weight', vocab_size, shape.width).t()
        self._rope = rope

    def embed(self, tokens: Tensor) -> Tensor:
        """[num_tokens] int64 -> [num_tokens, width], scaled."""
        return self._embedding.index_select(0, tokens)

    def run_layer(self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Hidden [num_tokens, width] at positions [num_tokens] int64 -> the same shape."""
        return self._layers[layer](layer, hidden, self._rope.rows(positions), attend)

    def logits(self, hidden: Tensor) -> Tensor:
        """[num_tokens, width] -> [num_tokens, vocab_size] float32."""
        return torch.mm(self._norm(hidden), self._head).to(torch.float32)
