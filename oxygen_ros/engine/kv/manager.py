# SPDX-License-Identifier: Apache-2.0
"""The KV cache manager: shared prefixes registered once, contexts of tasks bound to them."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ...types import Provenance, TaskType
from ..config import KVConfig
from ..errors import NeverFitsError, PoolError
from ..spec import ModelSpec
from .block_pool import BlockPool
from .context import Context
from .kv_cache import KVCache
from .prefix import Prefix, PrefixBuilder


class KVCacheManager:
    """The front of the engine's memory; only the thread that owns the engine calls it.

    Who holds a slot:

    | slot              | from                      | to                                   |
    | ----------------- | ------------------------- | ------------------------------------ |
    | being built       | begin_prefix              | register_immutable_prefix or abandon |
    | newest            | register_immutable_prefix | the next one's registration          |
    | read by an action | bind_context(action)      | release: the next action is ready    |
    | pinned by text    | bind_context(text)        | release: its last request has ended  |
    """

    def __init__(
        self, spec: ModelSpec, config: KVConfig, device: torch.device, dtype: torch.dtype
    ) -> None:
        block_size = config.block_size
        slot_blocks = -(-spec.max_prefix_tokens // block_size)
        stride = -(-spec.max_action_tokens // block_size)
        text_runs = -(-config.num_text_blocks // stride)
        self.config = config
        self.pool = BlockPool(
            config.max_live_prefixes,
            slot_blocks,
            text_runs + config.reserved_action_contexts,
            stride,
            config.reserved_action_contexts,
        )
        self.cache = KVCache(spec, self.pool.num_blocks, block_size, device, dtype)
        self._max_age_ns = round(config.text_prefix_max_age_s * 1e9)
        self._newest: Prefix | None = None
        # Who holds each slot: a handle whose slot went on to another holder is recognised by it.
        self._holders: list[Prefix | PrefixBuilder | None] = [None] * config.max_live_prefixes
        self._contexts: dict[Context, None] = {}  # in order of binding
        self._num_prefixes = 0

    @property
    def newest(self) -> Prefix | None:
        """The newest registered prefix that is shared."""
        return self._newest

    def contexts(self) -> Iterable[Context]:
        """Return the bound contexts, in order of binding."""
        return tuple(self._contexts)

    def live_prefixes(self) -> list[Prefix]:
        """Return the prefixes that somebody reads, and the newest, oldest first."""
        live = [holder for holder in tuple(self._holders) if isinstance(holder, Prefix)]
        return sorted(live, key=lambda prefix: prefix.prefix_id)

    def can_begin_prefix(self) -> bool:
        """Whether a slot is free."""
        return self.pool.num_free_slots > 0

    def begin_prefix(
        self, num_tokens: int, *, num_visual_tokens: int, steady_ns: int, provenance: Provenance
    ) -> PrefixBuilder | None:
        """Take a slot to build a prefix in; None: all slots are held.

        :raises NeverFitsError: the prefix is longer than a slot.
        """
        needed = -(-num_tokens // self.config.block_size)
        if needed > self.pool.slot_blocks:
            raise NeverFitsError(f'prefix of {num_tokens} tokens', needed, self.pool.slot_blocks)
        slot = self.pool.take_slot()
        if slot is None:
            return None
        builder = PrefixBuilder(
            slot, num_tokens, num_visual_tokens, steady_ns, provenance, self.pool
        )
        self._holders[slot] = builder
        return builder

    def abandon(self, builder: PrefixBuilder) -> None:
        """Give up a prefix that was not registered.

        :raises PoolError: it was registered or abandoned before.
        """
        if builder.closed:
            raise PoolError(f'slot {builder.slot}: expected one being built, got a closed one')
        self.pool.drop_slot(builder.slot)
        self._holders[builder.slot] = None
        builder.closed = True

    def register_immutable_prefix(self, builder: PrefixBuilder) -> Prefix:
        """Make a finished prefix immutable and the newest one.

        :raises PrefixImmutableError: it was registered or abandoned before.
        """
        prefix = self._register(builder)
        self.forget_newest()
        self._newest = prefix
        return prefix

    def register_private_prefix(
        self, builder: PrefixBuilder, now_ns: int, task: TaskType
    ) -> Context:
        """Register a prefix for one reader alone and bind it (isolated caches).

        :raises PrefixImmutableError: it was registered or abandoned before.
        """
        prefix = self._register(builder)
        context = self.bind_context(task, prefix, now_ns)
        self._release(prefix)  # the context holds the only reference now
        return context

    def _register(self, builder: PrefixBuilder) -> Prefix:
        first_block = builder.block_table[0]
        self.pool.share_slot(builder.slot)
        builder.closed = True
        self._num_prefixes += 1
        prefix = Prefix(
            self._num_prefixes,
            builder.slot,
            first_block,
            builder.num_tokens,
            builder.num_visual_tokens,
            builder.steady_ns,
            builder.provenance,
        )
        self._holders[builder.slot] = prefix
        return prefix

    def forget_newest(self) -> None:
        """Drop the manager's own reference (time jumped, or the engine stops)."""
        if self._newest is not None:
            newest, self._newest = self._newest, None
            self._release(newest)

    def _release(self, prefix: Prefix) -> None:
        if self.pool.release(prefix.slot):
            self._holders[prefix.slot] = None

    def bind_context(self, task: TaskType, prefix: Prefix, now_ns: int) -> Context:
        """Bind a task to a registered prefix.

        An action gets its run, which never fails up to the reserve; text starts without blocks.

        :raises PoolError: the prefix is no longer alive, or more action contexts than reserved are
            bound and text holds the rest. Nothing was taken.
        """
        if self._holders[prefix.slot] is not prefix:
            raise PoolError(f'prefix {prefix.prefix_id}: expected a live one, got a released one')
        run_block = None
        if task is TaskType.PHYSICAL_ACTION:
            run_block = self.pool.take_run()
            if run_block is None:
                raise PoolError(
                    f'action contexts: expected at most {self.pool.num_action_runs}, got more'
                )
        self.pool.retain(prefix.slot)
        context = Context(
            task, prefix, self.pool, self.config.block_size, now_ns, run_block, self._released
        )
        self._contexts[context] = None
        return context

    def _released(self, context: Context) -> None:
        del self._contexts[context]
        self._release(context.prefix)

    def choose_text_prefix(self, now_ns: int) -> Prefix | None:
        """Return the prefix for a new text request, or None: it has to wait.

        Of S = `max_live_prefixes` slots one is for building, one for the newest, S - 2 to pin:

        | newest prefix pinned by text          | prefixes pinned | the request                  |
        | ------------------------------------- | --------------- | ---------------------------- |
        | younger than `text_prefix_max_age_s`  | any             | joins it                     |
        | older, and the newest of all          | any             | joins it                     |
        | older, or none                        | below S - 2     | pins the newest complete one |
        | none                                  | 0 = S - 2       | pins it; observations wait   |
        | older                                 | S - 2           | waits for the end of a pin   |
        """
        newest = self._newest
        if newest is None:
            return None
        pinned = {
            context.prefix.slot: context.prefix
            for context in self._contexts
            if context.task is not TaskType.PHYSICAL_ACTION
        }
        if pinned:
            joinable = max(pinned.values(), key=lambda prefix: prefix.prefix_id)
            if now_ns - joinable.steady_ns < self._max_age_ns:
                return joinable
        if newest.slot in pinned or len(pinned) < max(1, self.config.max_live_prefixes - 2):
            return newest
        return None

    def refusal(self, num_tokens: int) -> str:
        """Return why a text request of this many own tokens can never be served; empty: it can."""
        needed = -(-num_tokens // self.config.block_size)
        available = self.pool.max_text_blocks
        error = NeverFitsError(f'request of {num_tokens} tokens', needed, available)
        return '' if needed <= available else str(error)

    def check_integrity(self) -> None:
        """Assert the invariants of memory: counts add up, and each block is in one table."""
        pool = self.pool
        pool.check()
        blocks = [block for context in self._contexts for block in context.block_table]
        assert len(set(blocks)) == len(blocks)
        assert all(block >= pool.first_run_block and pool.is_owned(block) for block in blocks)
        # Nothing is held that no context knows of: a leak would show here.
        assert len(blocks) == pool.num_text + pool.num_action_runs * pool.action_stride
        readers = [context.prefix for context in self._contexts]
        if self._newest is not None:
            readers.append(self._newest)
        for slot, holder in enumerate(self._holders):
            on_slot = [prefix for prefix in readers if prefix.slot == slot]
            assert pool.refs(slot) == len(on_slot)
            assert all(prefix is holder for prefix in on_slot)
            assert pool.is_shared(pool.slot_block(slot)) == isinstance(holder, Prefix)
            assert pool.is_owned(pool.slot_block(slot)) == isinstance(holder, PrefixBuilder)
