# SPDX-License-Identifier: Apache-2.0
"""Attention batches in a store whose dead rows are NaN, and their answer by dense softmax."""

from dataclasses import dataclass
import math
import random

import torch
from torch import Tensor

from oxygen_ros.engine.attention import MaskKind, Span

torch.set_num_threads(1)  # as the engine does; two wait for each other on a busy machine

BIDIRECTIONAL, CAUSAL, PREFIX_ONLY = MaskKind.BIDIRECTIONAL, MaskKind.CAUSAL, MaskKind.PREFIX_ONLY


@dataclass(frozen=True)
class Heads:
    """Shape of attention."""

    num_heads: int
    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class Task:
    """A span before it is given blocks."""

    num_tokens: int
    mask: MaskKind
    num_own: int = 0
    prefix: int | None = None  # which of the prefixes
    scattered: bool = True


@dataclass
class Batch:
    """A store, the spans and inputs of one batch, and each span's K and V as dense tensors."""

    kv: Tensor
    heads: Heads
    spans: list[Span]
    q: Tensor
    k: Tensor
    v: Tensor
    dense: list[tuple[Tensor, Tensor]]  # per span: prefix, older, fresh

    def rows(self, index: int) -> slice:
        """Return the rows of q, k and v of a span."""
        first = sum(span.num_tokens for span in self.spans[:index])
        return slice(first, first + self.spans[index].num_tokens)

    def expected(self) -> tuple[Tensor, Tensor]:
        """Return out and log-sum-exp in float64, query by query, from the dense K and V."""
        outs, lses = [], []
        group = self.heads.num_heads // self.heads.num_kv_heads
        for index, span in enumerate(self.spans):
            keys, values = (
                part.double().repeat_interleave(group, dim=1) for part in self.dense[index]
            )
            for token, q in enumerate(self.q[self.rows(index)].double()):
                num_seen = len(keys)
                if span.mask is CAUSAL:
                    num_seen = span.prefix_tokens + span.num_own + token + 1
                scores = torch.einsum('hd,khd->hk', q, keys[:num_seen])
                weights = (scores / math.sqrt(self.heads.head_dim)).exp()
                total = weights.sum(1, keepdim=True)
                lses.append(total[:, 0].log())
                outs.append(torch.einsum('hk,khd->hd', weights / total, values[:num_seen]))
        return torch.stack(outs).flatten(1), torch.stack(lses)


def place_blocks(runs: list[int], place: random.Random) -> tuple[list[int], int]:
    """Lay runs of blocks at random, with gaps; return their first blocks and the end."""
    order = list(range(len(runs)))
    place.shuffle(order)
    starts, end = [0] * len(runs), 0
    for run in order:
        starts[run] = end + place.randrange(3)
        end = starts[run] + runs[run]
    return starts, end + 2


def make_batch(
    heads: Heads,
    tasks: list[Task],
    prefixes: list[int],
    block_size: int = 4,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    layout_seed: int | None = None,
    dead: float = math.nan,
    num_layers: int = 1,
    layer: int = 0,
) -> Batch:
    """Lay tasks out in a store.

    :param prefixes: lengths; :param seed: of the values; :param layout_seed: of where blocks lie.
    :param dead: what every row outside the live ones holds.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(num_rows: int, num_heads: int = heads.num_kv_heads) -> Tensor:
        shape = (num_rows, num_heads, heads.head_dim)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    own = [
        0 if task.mask is PREFIX_ONLY else math.ceil((task.num_own + task.num_tokens) / block_size)
        for task in tasks
    ]
    runs = [math.ceil(length / block_size) for length in prefixes]
    for task, num_blocks in zip(tasks, own, strict=True):
        runs += [1] * num_blocks if task.scattered else [num_blocks]
    starts, num_blocks = place_blocks(
        runs, random.Random(seed if layout_seed is None else layout_seed)
    )
    kv = torch.full(
        (num_layers, 2, num_blocks, block_size, heads.num_kv_heads, heads.head_dim),
        dead,
        dtype=dtype,
    )
    store = kv.flatten(2, 3)[layer]  # [2, rows, num_kv_heads, head_dim]

    shared = []
    for length, block in zip(prefixes, starts, strict=False):
        shared.append((normal(length), normal(length)))
        for part, values in zip(store, shared[-1], strict=True):
            part[block * block_size : block * block_size + length] = values
    spans, dense, fresh = [], [], []
    left = starts[len(prefixes) :]
    for task, num_blocks in zip(tasks, own, strict=True):
        num_runs = num_blocks if task.scattered else 1
        table = left[:num_runs] if task.scattered else range(left[0], left[0] + num_blocks)
        left = left[num_runs:]
        older = normal(task.num_own), normal(task.num_own)
        for token in range(task.num_own):
            row = table[token // block_size] * block_size + token % block_size
            store[0, row], store[1, row] = older[0][token], older[1][token]
        fresh.append(
            (
                normal(task.num_tokens, heads.num_heads),
                normal(task.num_tokens),
                normal(task.num_tokens),
            )
        )
        parts = [] if task.prefix is None else [shared[task.prefix]]
        if task.mask is not PREFIX_ONLY:
            parts += [older, fresh[-1][1:]]
        dense.append(
            (torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts]))
        )
        spans.append(
            Span(
                task.num_tokens,
                0 if task.prefix is None else starts[task.prefix],
                0 if task.prefix is None else prefixes[task.prefix],
                tuple(table),
                task.num_own,
                task.mask,
            )
        )
    q, k, v = (torch.cat(parts) for parts in zip(*fresh, strict=True))
    return Batch(kv, heads, spans, q, k, v, dense)


def robot_batch(
    seed: int = 0, dtype: torch.dtype = torch.float32, heads: Heads = Heads(4, 1, 32)
) -> Batch:
    """Return what a robot runs: an action, texts on two prefixes, a prompt, a dense read."""
    return make_batch(
        heads,
        [
            Task(17, BIDIRECTIONAL, num_own=7, prefix=1, scattered=False),
            Task(1, CAUSAL, num_own=30, prefix=0),
            Task(1, CAUSAL, num_own=9, prefix=1),
            Task(1, CAUSAL, num_own=3, prefix=0),
            Task(6, CAUSAL, num_own=5, prefix=1),
            Task(3, PREFIX_ONLY, prefix=0),
        ],
        prefixes=[40, 33],
        block_size=8,
        seed=seed,
        dtype=dtype,
    )
