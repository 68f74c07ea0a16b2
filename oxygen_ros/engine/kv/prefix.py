# SPDX-License-Identifier: Apache-2.0
"""Perceptual prefixes: being built, and registered for good."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...types import Provenance
from ..errors import PrefixImmutableError
from .block_pool import BlockPool


@dataclass(frozen=True, slots=True)
class Prefix:
    """An immutable run of blocks that holds the K/V of one observation.

    Alive while the pool counts a reference to its slot; who keeps one, retains it.
    """

    prefix_id: int  # from 1, counts up
    slot: int
    first_block: int
    num_tokens: int
    num_visual_tokens: int
    steady_ns: int  # of the observation
    provenance: Provenance

    @property
    def observation_id(self) -> int:
        """The observation that it holds."""
        return self.provenance.observation_id


@dataclass(slots=True)
class PrefixBuilder:
    """A prefix under construction: the one writer of its slot."""

    slot: int
    num_tokens: int
    num_visual_tokens: int
    steady_ns: int
    provenance: Provenance
    pool: BlockPool = field(repr=False)
    closed: bool = False  # registered or abandoned

    @property
    def block_table(self) -> tuple[int, ...]:
        """Blocks to write to, in order.

        :raises PrefixImmutableError: it was registered, so that nobody writes to it again, or
            abandoned.
        """
        if self.closed:
            raise PrefixImmutableError(
                f'slot {self.slot}: expected a prefix being built, got a closed one'
            )
        first = self.pool.slot_block(self.slot)
        return tuple(range(first, first + self.pool.slot_blocks))
