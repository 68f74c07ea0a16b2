# SPDX-License-Identifier: Apache-2.0
"""How the KV cache is used: by class and state, by live prefix, and what isolated caches take."""

from __future__ import annotations

from dataclasses import dataclass

from .manager import KVCacheManager


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """One moment of the cache; bytes of whole blocks.

    What prefix, action, text and free leave of the total is slack: the unused tails of slots, and
    prefixes being built, which nobody refers to yet.
    """

    bytes_total: int
    bytes_prefix: int
    bytes_action: int
    bytes_text: int
    bytes_free: int
    bytes_isolated: int
    blocks_total: int
    blocks_free: int
    blocks_owned: int
    blocks_shared: int
    prefix_observation_ids: tuple[int, ...]  # live prefixes, oldest first
    prefix_age_s: tuple[float, ...]
    prefix_readers: tuple[int, ...]

    @property
    def bytes_referenced(self) -> int:
        """Bytes that tasks refer to, each page counted once."""
        return self.bytes_prefix + self.bytes_action + self.bytes_text


def reduction_limit(prefix_tokens: int, private_tokens: int, num_tasks: int = 3) -> float:
    """Return the largest possible saving of sharing one prefix: 1 - (P + s) / (n P + s).

    :param prefix_tokens: P, tokens of the shared prefix.
    :param private_tokens: s, tokens that the tasks together have of their own.
    """
    return 1.0 - (prefix_tokens + private_tokens) / (num_tasks * prefix_tokens + private_tokens)


def memory_report(manager: KVCacheManager, now_ns: int) -> MemoryReport:
    """Read the cache.

    A prefix counts by the blocks that hold its tokens. Isolated caches would hold one copy for
    each reader, and one for a prefix that nobody reads yet. Any thread may call it; off the
    engine's thread the parts may be of two neighbouring moments.
    """
    pool = manager.pool
    block_bytes = manager.cache.bytes_per_block
    contexts = tuple(manager.contexts())
    prefixes = manager.live_prefixes()
    readers = [sum(context.prefix is prefix for context in contexts) for prefix in prefixes]
    blocks = [-(-prefix.num_tokens // manager.config.block_size) for prefix in prefixes]
    action = pool.num_action_runs * pool.action_stride
    text = pool.num_text
    prefix_copies = sum(count * max(1, num_readers) for count, num_readers in zip(blocks, readers))
    return MemoryReport(
        bytes_total=pool.num_blocks * block_bytes,
        bytes_prefix=sum(blocks) * block_bytes,
        bytes_action=action * block_bytes,
        bytes_text=text * block_bytes,
        bytes_free=pool.num_free * block_bytes,
        bytes_isolated=(prefix_copies + action + text) * block_bytes,
        blocks_total=pool.num_blocks,
        blocks_free=pool.num_free,
        blocks_owned=pool.num_owned,
        blocks_shared=pool.num_shared,
        prefix_observation_ids=tuple(prefix.observation_id for prefix in prefixes),
        prefix_age_s=tuple((now_ns - prefix.steady_ns) * 1e-9 for prefix in prefixes),
        prefix_readers=tuple(readers),
    )
