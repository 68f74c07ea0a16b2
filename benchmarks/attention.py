# SPDX-License-Identifier: Apache-2.0
"""Speed of the attention backends side by side, one layer of the small model at a time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table
import torch

from oxygen_ros.engine.attention import create_backend, MaskKind, Span

from .command_line import main, parser

BLOCK_SIZE = 16
ACTION_TOKENS = 17  # a state token and a chunk of 16
ACTION_PROMPT_TOKENS = 24
DECODE_OWN_TOKENS = (63, 48, 31, 10)  # four requests, each at its own length
TEXT_BLOCKS = 4  # of each request


def compare_speed(
    prefix_lengths: Sequence[int] = (192, 1024, 4096),
    repeats: int = 50,
    num_heads: int = 4,
    num_kv_heads: int = 1,
    head_dim: int = 32,
) -> dict[str, dict[str, float]]:
    """Time one layer of attention on `reference` and `sdpa`, turn by turn on the same store.

    :param repeats: timed calls of each; five more go before.
    :return: for `action.<prefix>` and `decode.<prefix>`: the median `reference_us` and `sdpa_us`,
        their `ratio`, and `<backend>_prefix_bytes_copied` by one call.
    """
    result = {}
    with torch.inference_mode():
        for length in prefix_lengths:
            for name, spans in _batches(length).items():
                num_blocks = 1 + max(max(span.block_table) for span in spans)
                kv = torch.randn(1, 2, num_blocks, BLOCK_SIZE, num_kv_heads, head_dim)
                result[f'{name}.{length}'] = _compare(kv, spans, num_heads, repeats)
    return result


def _batches(prefix_tokens: int) -> dict[str, list[Span]]:
    """Return an action chunk, and four decoding texts whose blocks lie scattered."""
    first = -(-prefix_tokens // BLOCK_SIZE)  # blocks of the prefix come before
    num_action_blocks = -(-(ACTION_PROMPT_TOKENS + ACTION_TOKENS) // BLOCK_SIZE)
    action = Span(
        ACTION_TOKENS,
        0,
        prefix_tokens,
        tuple(range(first, first + num_action_blocks)),
        ACTION_PROMPT_TOKENS,
        MaskKind.BIDIRECTIONAL,
    )
    num_texts = len(DECODE_OWN_TOKENS)
    decode = [
        Span(
            1,
            0,
            prefix_tokens,
            tuple(first + text + num_texts * block for block in range(TEXT_BLOCKS)),
            num_own,
            MaskKind.CAUSAL,
        )
        for text, num_own in enumerate(DECODE_OWN_TOKENS)
    ]
    return {'action': [action], 'decode': decode}


def _compare(
    kv: torch.Tensor, spans: Sequence[Span], num_heads: int, repeats: int
) -> dict[str, float]:
    """Time both backends in turn, so that a busy moment of the machine hits both."""
    _, _, _, _, num_kv_heads, head_dim = kv.shape
    num_tokens = sum(span.num_tokens for span in spans)
    q = torch.randn(num_tokens, num_heads, head_dim)
    k, v = torch.randn(2, num_tokens, num_kv_heads, head_dim)
    row: dict[str, float] = {}
    calls = []
    for name in ('reference', 'sdpa'):
        backend = create_backend(name, kv, num_heads)
        plan = backend.plan(spans)
        backend.attend(plan, 0, q, k, v)
        row[f'{name}_prefix_bytes_copied'] = backend.prefix_bytes_copied
        calls.append((name, backend, plan))
    times: dict[str, list[float]] = {name: [] for name, _, _ in calls}
    for repeat in range(-5, repeats):
        for name, backend, plan in calls:
            start_ns = time.perf_counter_ns()
            backend.attend(plan, 0, q, k, v)
            if repeat >= 0:
                times[name].append((time.perf_counter_ns() - start_ns) / 1e3)
    row |= {f'{name}_us': median(samples) for name, samples in times.items()}
    row['ratio'] = row['reference_us'] / row['sdpa_us']
    return row


def run() -> dict[str, Any]:
    """Measure, print, and return the figures under `attention`."""
    found = compare_speed()
    table = Table(title='attention, sdpa against reference, one layer')
    for column in ('batch.prefix', 'reference us', 'sdpa us', 'ratio', 'prefix bytes copied'):
        table.add_column(column, justify='left' if column == 'batch.prefix' else 'right')
    for name, row in found.items():
        table.add_row(
            name,
            f'{row["reference_us"]:.0f}',
            f'{row["sdpa_us"]:.0f}',
            f'{row["ratio"]:.1f}',
            f'{row["sdpa_prefix_bytes_copied"]:.0f}',
        )
    Console().print(table)
    return {'attention': found}


if __name__ == '__main__':
    sys.exit(main(parser(__doc__).parse_args(), run))
