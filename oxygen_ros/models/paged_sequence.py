# SPDX-License-Identifier: Apache-2.0
"""One sequence on the engine's paged attention without an engine: for parity and measurement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ..engine.attention import create_backend, MaskKind, Span
from ..engine.kv.kv_cache import KVCache
from ..engine.model import Attend
from .flow_vla import FlowPass, FlowVLA

BLOCK_SIZE = 16


class PagedSequence:
    """A prefix in its slot, and pages of one task after it.

    Inputs are tensors in the model's own terms; nothing is pre- or post-processed.

    :param max_own_tokens: rows of the task after the prefix.
    """

    def __init__(
        self, model: FlowVLA, backend: str, max_prefix_tokens: int, max_own_tokens: int
    ) -> None:
        self.model = model
        self.num_prefix = self.num_own = 0
        self._prefix_blocks = -(-max_prefix_tokens // BLOCK_SIZE)
        num_blocks = self._prefix_blocks + -(-max_own_tokens // BLOCK_SIZE)
        self.cache = KVCache(model.spec, num_blocks, BLOCK_SIZE, model.device, model.dtype)
        self._backend = create_backend(backend, self.cache.data, model.spec.num_heads)
        # Own pages in falling order, so that nothing relies on their being neighbours.
        self._own_blocks = tuple(range(num_blocks - 1, self._prefix_blocks - 1, -1))

    def _attend(self, num_tokens: int, mask: MaskKind, num_own: int) -> Attend:
        span = Span(num_tokens, 0, self.num_prefix, self._own_blocks, num_own, mask)
        return partial(self._backend.attend, self._backend.plan([span]))

    @torch.inference_mode()
    def prefill(self, images: Sequence[Tensor], tokens: Tensor) -> Tensor:
        """Build the prefix of images [3, px, px] and tokens [n]; return all hidden states."""
        model = self.model
        return self.prefill_features(
            [model.encode_image(image.to(model.device, model.dtype)) for image in images], tokens
        )

    @torch.inference_mode()
    def prefill_features(self, features: Sequence[Tensor], tokens: Tensor) -> Tensor:
        """Build the prefix of encoded images [tokens_per_image, width] and tokens [n]."""
        model = self.model
        hidden = torch.cat([*features, model.embed_tokens(tokens.to(model.device))])
        span = Span(
            len(hidden), 0, 0, tuple(range(self._prefix_blocks)), 0, MaskKind.BIDIRECTIONAL
        )
        attend = partial(self._backend.attend, self._backend.plan([span]))
        positions = torch.arange(len(hidden), device=model.device)
        for layer in range(model.spec.num_layers):
            hidden = model.run_layer(layer, hidden, positions, attend)
        self.num_prefix = len(hidden)
        return hidden

    @torch.inference_mode()
    def step(self, token: int) -> Tensor:
        """Append one token; return the logits of the next [vocab_size]."""
        model = self.model
        device = model.device
        hidden = model.embed_tokens(torch.tensor([token], device=device))
        positions = torch.tensor([self.num_prefix + self.num_own], device=device)
        attend = self._attend(1, MaskKind.CAUSAL, self.num_own)
        for layer in range(model.spec.num_layers):
            hidden = model.run_text_layer(layer, hidden, positions, attend)
        self.num_own += 1
        return model.logits(hidden)[0]

    def prefix_kv(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return K and V of the prefix, each [num_tokens, num_kv_heads, head_dim]."""
        return self.cache.prefix_view(layer, 0, self.num_prefix)

    @torch.inference_mode()
    def act(
        self, noise: Tensor, state: Tensor | None, suffix_shift: int = 0
    ) -> tuple[Tensor, FlowPass]:
        """Make one pass; return the first velocity and the finished pass.

        :param suffix_shift: added to the suffix's positions: a mistake on purpose.
        """
        model, spec = self.model, self.model.spec
        num_head = spec.action_head_tokens
        mask = MaskKind.CAUSAL if spec.action_causal else MaskKind.BIDIRECTIONAL
        attend = self._attend(spec.action_horizon, mask, num_head)
        head = self._attend(num_head, MaskKind.CAUSAL, 0) if num_head else attend
        action = model.begin_pass(noise, state, self.num_prefix + suffix_shift)
        model.prepare_action(action, model.prepare_prefix(self.prefix_kv), head)
        first = torch.empty(0)
        for step in range(action.num_steps):
            model.denoise_step(action, step, attend)
            if step == 0:
                assert action.velocity is not None
                first = action.velocity.clone()
        return first, action
