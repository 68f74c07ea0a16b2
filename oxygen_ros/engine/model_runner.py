# SPDX-License-Identifier: Apache-2.0
"""Model and pages joined: runs vision, layers and heads for spans of tokens, and counts them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ..types import CameraFrame
from .attention import AttentionBackend, AttentionPlan, Span
from .counters import Counters, ImageLedger
from .kv.kv_cache import KVCache
from .kv.prefix import Prefix
from .model import Attend, PrefixKV, VLAModel
from .scheduling.work import UnitKind

_TEXT_KINDS = (UnitKind.TEXT_PREFILL, UnitKind.DECODE)


class ModelRunner:
    """The one door to the model.

    Only the thread that owns the engine calls it.

    :param max_positions: tokens of the longest sequence, prefix and own together.
    """

    def __init__(
        self,
        model: VLAModel,
        cache: KVCache,
        backend: AttentionBackend,
        counters: Counters,
        max_positions: int,
    ) -> None:
        self.model = model
        self.spec = model.spec
        self.counters = counters
        self.ledger = ImageLedger()
        self.backend = backend
        self._cache = cache
        self._positions = torch.arange(max_positions, device=model.device)

    def plan(self, spans: Sequence[Span]) -> AttentionPlan:
        """Prepare attention over a batch of spans, good for all layers."""
        return self.backend.plan(spans)

    def attend(self, plan: AttentionPlan) -> Attend:
        """Return the function that a model's layer calls."""
        return partial(self.backend.attend, plan)

    def positions(self, start: int, num_tokens: int) -> Tensor:
        """Return the positions start .. start + num_tokens - 1 as a view: [num_tokens] int64."""
        return self._positions[start : start + num_tokens]

    def position_rows(self, positions: Sequence[int]) -> Tensor:
        """Return given positions: [len(positions)] int64."""
        return torch.tensor(positions, device=self.model.device)

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Embed tokens: [len(tokens), width]."""
        return self.model.embed_tokens(torch.tensor(tokens, device=self.model.device))

    def preprocess(self, frame: CameraFrame) -> Tensor:
        """Bring one image to the model's input: [3, height, width]."""
        self.counters.units[UnitKind.INGEST] += 1
        return self.model.preprocess(frame)

    def encode_image(self, image: Tensor) -> Tensor:
        """Run the vision tower on one image: [tokens_per_image, width]."""
        self.counters.units[UnitKind.VISION] += 1
        self.counters.images_encoded += 1
        return self.model.encode_image(image)

    def prefix_kv(self, prefix: Prefix) -> PrefixKV:
        """Return the function that reads a complete prefix."""
        return partial(
            self._cache.prefix_view, first_block=prefix.first_block, num_tokens=prefix.num_tokens
        )

    def layer(
        self, kind: UnitKind, layer: int, hidden: Tensor, positions: Tensor, attend: Attend
    ) -> Tensor:
        """Run one layer: hidden [num_tokens, width] -> the same."""
        self.counters.units[kind] += 1
        run = self.model.run_text_layer if kind in _TEXT_KINDS else self.model.run_layer
        return run(layer, hidden, positions, attend)

    def write_layer(
        self, layer: int, hidden: Tensor, positions: Tensor, plan: AttentionPlan
    ) -> None:
        """Leave the K/V of a layer in the pages, for tokens whose output nobody reads."""
        self.counters.units[UnitKind.WRITE_KV] += 1
        keys, values = self.model.keys_values(layer, hidden, positions)
        self.backend.write(plan, layer, keys, values)

    def logits(self, hidden: Tensor) -> Tensor:
        """Run the output head: [num_rows, width] -> [num_rows, vocab_size] float32."""
        self.counters.units[UnitKind.HEAD] += 1
        return self.model.logits(hidden)
