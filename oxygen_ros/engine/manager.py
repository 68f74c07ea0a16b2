"""The KV cache manager: shared prefixes registered once, contexts of tasks bound to them (R12)."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import torch

from ..types import Provenance, TaskType
from .block_pool import BlockPool
from .context import Context
from .errors import NeverFitsError
from .kv_cache import KVCache
from .prefix import Prefix, PrefixBuilder
from .spec import ModelSpec


class Sharing(str, Enum):
    """Who reads a prefix."""

    SHARED = 'shared'  # every task, the same pages
    ISOLATED = 'isolated'  # its own task alone: the baseline with a copy for each task


@dataclass(frozen=True, slots=True)
class KVConfig:
    """Sizes of the pool and rules of sharing.

    :raises ValueError: names the field, what was expected and what came.
    """

    sharing: Sharing | str = Sharing.SHARED
    block_size: int = 8  # tokens; small, so that little of a last block stays unused
    max_live_prefixes: int = 4  # slots: one being built, the newest, the others pinned by text
    num_text_blocks: int = 256
    reserved_action_contexts: int = 2  # the one in use, and the next one's prompt being prefilled
    text_prefix_max_age_s: float = 0.5  # a new text request joins a pinned prefix younger than this

    def __post_init__(self) -> None:
        if self.sharing not in [sharing.value for sharing in Sharing]:
            raise ValueError(f'kv.sharing: expected shared or isolated, got {self.sharing}')
        for name, least in (('block_size', 1), ('max_live_prefixes', 2), ('num_text_blocks', 1),
                            ('reserved_action_contexts', 2)):
            if getattr(self, name) < least:
                raise ValueError(f'kv.{name}: expected at least {least}, got {getattr(self, name)}')
        if not self.text_prefix_max_age_s >= 0.0:
            raise ValueError(f'kv.text_prefix_max_age_s: expected at least 0, got {self.text_prefix_max_age_s}')


class KVCacheManager:
    """The front of the engine's memory; only the thread that owns the engine calls it.

    Who holds a slot:

    | slot              | from                          | to                                                   |
    | ----------------- | ----------------------------- | ---------------------------------------------------- |
    | being built       | begin_prefix                  | register_immutable_prefix, or abandon                |
    | newest            | register_immutable_prefix     | the next one is registered (the manager's reference) |
    | read by an action | bind_context(PHYSICAL_ACTION) | release, when the next action context is ready       |
    | pinned by text    | bind_context(text)            | release, at the end of the last request on it        |
    """

    def __init__(self, spec: ModelSpec, config: KVConfig, device: torch.device, dtype: torch.dtype) -> None:
        block_size = config.block_size
        slot_blocks = -(-spec.max_prefix_tokens // block_size)
        stride = -(-spec.max_action_tokens // block_size)
        text_runs = -(-config.num_text_blocks // stride)
        self.config = config
        self.pool = BlockPool(config.max_live_prefixes, slot_blocks, text_runs + config.reserved_action_contexts,
                              stride, config.reserved_action_contexts)
        self.cache = KVCache(spec, self.pool.num_blocks, block_size, device, dtype)
        self._max_age_ns = round(config.text_prefix_max_age_s * 1e9)
        self._newest: Prefix | None = None
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
        live = {context.prefix.slot: context.prefix for context in tuple(self._contexts)}
        if self._newest is not None:
            live[self._newest.slot] = self._newest
        return sorted(live.values(), key=lambda prefix: prefix.prefix_id)

    # Prefixes.

    def can_begin_prefix(self) -> bool:
        """Whether a slot is free."""
        return self.pool.num_free_slots > 0

    def begin_prefix(self, num_tokens: int, *, num_visual_tokens: int, steady_ns: int,
                     provenance: Provenance) -> PrefixBuilder | None:
        """Take a slot to build a prefix in; None: all slots are held.

        :raises NeverFitsError: the prefix is longer than a slot.
        """
        needed = -(-num_tokens // self.config.block_size)
        if needed > self.pool.slot_blocks:
            raise NeverFitsError(f'prefix of {num_tokens} tokens', needed, self.pool.slot_blocks)
        slot = self.pool.take_slot()
        if slot is None:
            return None
        return PrefixBuilder(slot, num_tokens, num_visual_tokens, steady_ns, provenance, self.pool)

    def abandon(self, builder: PrefixBuilder) -> None:
        """Give up a prefix that was not registered."""
        self.pool.drop_slot(builder.slot)
        builder.closed = True

    def register_immutable_prefix(self, builder: PrefixBuilder, now_ns: int) -> Prefix:
        """Make a finished prefix immutable and the newest one; nobody writes to it again (R1, R12)."""
        prefix = self._register(builder, now_ns)
        if self._newest is not None:
            self.pool.release(self._newest.slot)
        self._newest = prefix
        return prefix

    def register_private_prefix(self, builder: PrefixBuilder, now_ns: int, task: TaskType) -> Context:
        """Register a prefix for one reader alone (isolated caches) and bind that reader's context to it."""
        prefix = self._register(builder, now_ns)
        context = self.bind_context(task, prefix, now_ns)
        self.pool.release(prefix.slot)  # the context holds the only reference now
        return context

    def _register(self, builder: PrefixBuilder, now_ns: int) -> Prefix:
        first_block = builder.block_table[0]
        self.pool.share_slot(builder.slot)
        builder.closed = True
        self._num_prefixes += 1
        return Prefix(self._num_prefixes, builder.slot, first_block, builder.num_tokens, builder.num_visual_tokens,
                      builder.steady_ns, now_ns, builder.provenance)

    def forget_newest(self) -> None:
        """Drop the manager's own reference on the newest prefix (time jumped, or the engine stops)."""
        if self._newest is not None:
            self.pool.release(self._newest.slot)
            self._newest = None

    # Contexts.

    def bind_context(self, task: TaskType, prefix: Prefix, now_ns: int) -> Context:
        """Bind a task to a registered prefix: an action gets its run, text starts without blocks (R2, R12)."""
        run_block = None
        if task is TaskType.PHYSICAL_ACTION:
            run_block = self.pool.take_run()
            # The reserve keeps a run for each action context there may be.
            assert run_block is not None, 'more action contexts at one time than reserved'
        self.pool.retain(prefix.slot)
        context = Context(task, prefix, self.pool, self.config.block_size, now_ns, run_block, self._released)
        self._contexts[context] = None
        return context

    def _released(self, context: Context) -> None:
        del self._contexts[context]
        self.pool.release(context.prefix.slot)

    def choose_text_prefix(self, now_ns: int) -> Prefix | None:
        """Return the prefix for a new text request, or None: it has to wait.

        It joins the newest prefix that text pins already, when that is younger than `text_prefix_max_age_s`; else it
        pins the newest complete one, unless no slot would then be left to build the next observation in: of
        `max_live_prefixes` slots one is being built, one is the newest, and the rest can be pinned.
        """
        newest = self._newest
        if newest is None:
            return None
        pinned = {context.prefix.slot: context.prefix for context in self._contexts
                  if context.task is not TaskType.PHYSICAL_ACTION}
        if pinned:
            joinable = max(pinned.values(), key=lambda prefix: prefix.prefix_id)
            if now_ns - joinable.steady_ns < self._max_age_ns:
                return joinable
        if newest.slot in pinned or len(pinned) < self.config.max_live_prefixes - 2:
            return newest
        if len(pinned) == 0:  # two slots only: pin the newest, and observations wait for the end of the request
            return newest
        return None

    def refusal(self, num_tokens: int) -> str:
        """Return why a text request of this many own tokens can never be served; empty: it can."""
        needed = -(-num_tokens // self.config.block_size)
        available = self.pool.max_text_blocks
        return '' if needed <= available else str(NeverFitsError(f'request of {num_tokens} tokens', needed, available))

    def check_integrity(self) -> None:
        """Assert the invariants of memory: counts add up, and no block is in two tables."""
        self.pool.check()
        seen: set[int] = set()
        refs: dict[int, int] = {}
        for context in self._contexts:
            blocks = context.block_table
            assert seen.isdisjoint(blocks)
            seen.update(blocks)
            refs[context.prefix.slot] = refs.get(context.prefix.slot, 0) + 1
        if self._newest is not None:
            refs[self._newest.slot] = refs.get(self._newest.slot, 0) + 1
        for slot in range(self.pool.num_slots):
            assert self.pool.refs(slot) == refs.get(slot, 0)
