# SPDX-License-Identifier: Apache-2.0
"""What one task has in the cache: a pinned prefix to read and blocks of its own to write."""

from __future__ import annotations

from collections.abc import Callable

from ...types import TaskType
from ..errors import PoolError, PrefixImmutableError
from .block_pool import BlockPool
from .prefix import Prefix


class Context:
    """The block table of one task on one prefix.

    An action holds one whole run, from `bind_context` to `release`, rewritten by every pass. Text
    takes single blocks as it grows. Made by `KVCacheManager.bind_context`; only the thread that
    owns the engine writes to it.
    """

    def __init__(
        self,
        task: TaskType,
        prefix: Prefix,
        pool: BlockPool,
        block_size: int,
        bound_ns: int,
        run_block: int | None,
        on_release: Callable[[Context], None],
    ) -> None:
        self.task = task
        self.prefix = prefix
        self.bound_ns = bound_ns
        self.num_tokens = 0  # own tokens whose K/V stand
        self._pool = pool
        self._block_size = block_size
        self._run_block = run_block
        self._on_release: Callable[[Context], None] | None = on_release
        self._blocks: list[int] = []
        if run_block is not None:
            self._blocks = list(range(run_block, run_block + pool.action_stride))

    @property
    def block_table(self) -> tuple[int, ...]:
        """Own blocks, in order."""
        return tuple(self._blocks)

    @property
    def num_blocks(self) -> int:
        """Own blocks."""
        return len(self._blocks)

    def extend(self, num_tokens: int) -> bool:
        """Make room for more own tokens; False: not enough blocks are free, and none was taken.

        :raises PoolError: the context was released.
        """
        if self._on_release is None:
            raise PoolError(
                f'context of {self.task.name}: expected a bound one, got one that was released'
            )
        missing = -(-(self.num_tokens + num_tokens) // self._block_size) - len(self._blocks)
        if missing <= 0:
            return True
        if self._run_block is not None or missing > self._pool.num_available_text:
            return False
        for _ in range(missing):
            block = self._pool.take_block()
            assert block is not None
            self._blocks.append(block)
        return True

    def writable_blocks(self, num_tokens: int) -> tuple[int, ...]:
        """Return the block table for writing the next `num_tokens` tokens.

        :raises PrefixImmutableError: it holds a block of a registered prefix.
        :raises PoolError: `extend` has not made room for them.
        """
        capacity = len(self._blocks) * self._block_size
        if self.num_tokens + num_tokens > capacity:
            raise PoolError(
                f'own tokens: expected at most {capacity}, got {self.num_tokens + num_tokens}'
            )
        for block in self._blocks:
            if self._pool.is_shared(block):
                raise PrefixImmutableError(
                    f'block {block}: expected an own block, got one of a registered prefix'
                )
        return tuple(self._blocks)

    def advance(self, num_tokens: int) -> None:
        """Note that the K/V of more own tokens stand."""
        self.num_tokens += num_tokens
        assert self.num_tokens <= len(self._blocks) * self._block_size

    def reset(self) -> None:
        """Give all own blocks back and keep the prefix (a text request out of memory)."""
        assert self._run_block is None
        self._give_back()

    def _give_back(self) -> None:
        if self._run_block is not None:
            self._pool.free_run(self._run_block)
        else:
            for block in self._blocks:
                self._pool.free_block(block)
        self._blocks = []
        self.num_tokens = 0

    def release(self) -> None:
        """Give everything back, exactly once.

        :raises PoolError: it was released before.
        """
        if self._on_release is None:
            raise PoolError(
                f'context of {self.task.name}: expected to be released once, got a second time'
            )
        self._give_back()
        on_release, self._on_release = self._on_release, None
        on_release(self)
