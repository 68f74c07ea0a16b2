# SPDX-License-Identifier: Apache-2.0
"""The contract of heterogeneous paged attention: ragged batches over [prefix pages] + [own pages].

`plan` is called once per step with host metadata, `run` or `attend` once per layer (the split is
FlashInfer's). Segments are merged exactly by their log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from torch import Tensor


class MaskKind(str, Enum):
    """What the fresh tokens of a span see besides their prefix and their older own tokens."""

    BIDIRECTIONAL = 'bidirectional'  # all fresh tokens of the span
    CAUSAL = 'causal'  # fresh tokens up to themselves
    PREFIX_ONLY = 'prefix_only'  # nothing else; writes no K/V (dense read)


@dataclass(frozen=True, slots=True)
class Span:
    """One task's part of a ragged batch: `num_tokens` consecutive rows of q, k and v.

    Own pages: logical own token j lies in block `block_table[j // block_size]`, row
    `j % block_size`. The fresh tokens are the own tokens num_own .. num_own + num_tokens - 1 and
    are written by `run` before attending. A span that builds a prefix has no prefix
    (prefix_tokens 0); its own pages are the slot being built.
    """

    num_tokens: int  # fresh tokens (queries)
    prefix_block: int  # first block of the prefix; its blocks are contiguous
    prefix_tokens: int  # 0: none
    block_table: tuple[int, ...]  # own blocks, in order; empty for PREFIX_ONLY
    num_own: int  # own tokens written before this batch
    mask: MaskKind


class AttentionPlan(Protocol):
    """Host and index metadata of one batch, good for every layer of a step."""

    num_tokens: int


class AttentionBackend(Protocol):
    """A way to compute it; only the thread that owns the engine calls it.

    The K/V store is `kv[num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim]`, given at
    construction. q, k and v have the dtype of the store.
    """

    name: str
    prefix_bytes_copied: int  # bytes of prefix K/V copied since construction

    def plan(self, spans: Sequence[Span]) -> AttentionPlan:
        """Check and prepare a batch.

        A plan depends on nothing but the spans: it may be kept and used for later passes.

        :raises ValueError: a block table is too short for its tokens, or a span is inconsistent.
        """
        ...

    def run(
        self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Write the fresh k and v into the own pages, then attend.

        :param q: [num_tokens, num_heads, head_dim], after RoPE.
        :param k: [num_tokens, num_kv_heads, head_dim]; rows of PREFIX_ONLY spans are not read.
        :param v: as k.
        :return: out [num_tokens, num_heads * head_dim] and the natural log-sum-exp
            [num_tokens, num_heads].
        """
        ...

    def write(self, plan: AttentionPlan, layer: int, k: Tensor, v: Tensor) -> None:
        """Write the fresh k and v into the own pages, as `run`, and attend to nothing."""
        ...

    def attend(self, plan: AttentionPlan, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Do as `run`, leaving out the log-sum-exp that a model does not ask for."""
        ...
