# SPDX-License-Identifier: Apache-2.0
"""Where the tokens of a span lie in the K/V store, counted in rows of one layer."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .base import MaskKind, Span


def check_store(kv: Tensor, num_heads: int) -> None:
    """Check a store against the number of query heads.

    :raises ValueError: the shape is not that of a store, or the heads do not divide.
    """
    if kv.dim() != 6 or kv.shape[1] != 2 or not kv.is_contiguous():
        raise ValueError(
            'kv: expected a contiguous [num_layers, 2, num_blocks, block_size, '
            f'num_kv_heads, head_dim], got {list(kv.shape)}'
        )
    if num_heads < 1 or num_heads % kv.shape[4]:
        raise ValueError(
            f'num_heads: expected a multiple of num_kv_heads ({kv.shape[4]}), got {num_heads}'
        )


def check_spans(spans: Sequence[Span], block_size: int, num_blocks: int) -> None:
    """Check a batch before anything is written.

    :raises ValueError: names the span, the field, what was expected and what came.
    """
    if not spans:
        raise ValueError('spans: expected at least one')
    for index, span in enumerate(spans):
        error = _span_error(span, block_size, num_blocks)
        if error:
            raise ValueError(f'span {index}: {error}')


def _span_error(span: Span, block_size: int, num_blocks: int) -> str | None:
    """Return what is wrong with a span."""
    if span.num_tokens < 1:
        return f'num_tokens: expected at least 1, got {span.num_tokens}'
    if span.prefix_tokens < 0 or span.num_own < 0:
        return (
            'prefix_tokens, num_own: expected at least 0, '
            f'got {span.prefix_tokens}, {span.num_own}'
        )
    prefix_end = span.prefix_block + -(-span.prefix_tokens // block_size)
    if span.prefix_tokens and not 0 <= span.prefix_block < prefix_end <= num_blocks:
        return (
            f'prefix: expected blocks within 0..{num_blocks - 1}, '
            f'got {span.prefix_block}..{prefix_end - 1}'
        )
    if span.mask is MaskKind.PREFIX_ONLY:
        if span.block_table or span.num_own:
            return 'block_table, num_own: expected none for prefix_only'
        if not span.prefix_tokens:
            return 'prefix_tokens: expected at least 1 for prefix_only, got 0'
        return None
    used = used_blocks(span, block_size)
    needed = -(-(span.num_own + span.num_tokens) // block_size)
    if len(used) < needed:
        return (
            f'block_table: expected at least {needed} blocks for '
            f'{span.num_own} + {span.num_tokens} tokens, got {len(span.block_table)}'
        )
    if min(used) < 0 or max(used) >= num_blocks:
        return f'block_table: expected blocks within 0..{num_blocks - 1}, got {used}'
    # a reader must never write into the prefix it shares
    if any(
        span.prefix_block <= block < prefix_end for block in used[span.num_own // block_size :]
    ):
        return (
            f'block_table: expected no block of the prefix '
            f'({span.prefix_block}..{prefix_end - 1}) among {used}'
        )
    return None


def used_blocks(span: Span, block_size: int) -> tuple[int, ...]:
    """Return the blocks that hold a span's own tokens, older and fresh."""
    return span.block_table[: -(-(span.num_own + span.num_tokens) // block_size)]


def fresh_rows(span: Span, block_size: int) -> list[int]:
    """Return the store rows of a span's fresh tokens, in order."""
    rows: list[int] = []
    position, end = span.num_own, span.num_own + span.num_tokens
    while position < end:
        block, offset = divmod(position, block_size)
        num_rows = min(block_size - offset, end - position)
        start = span.block_table[block] * block_size + offset
        rows += range(start, start + num_rows)
        position += num_rows
    return rows


def is_run(rows: Sequence[int]) -> bool:
    """Return whether numbers follow one another, so that a view holds what they name."""
    first = rows[0]
    return rows[-1] - first == len(rows) - 1 and (
        isinstance(rows, range) or list(rows) == list(range(first, first + len(rows)))
    )
