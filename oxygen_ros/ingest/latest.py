# SPDX-License-Identifier: Apache-2.0
"""The slot between a callback and the thread that works: the newest value wins, never a queue."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar('T')


class Latest(Generic[T]):
    """Holds at most one value.

    `put` belongs to one thread and `take` to one other. No lock: append and pop of a deque are
    single steps of the interpreter, so neither side ever waits for the other.
    """

    def __init__(self) -> None:
        self.num_put = 0
        self.num_taken = 0
        self._slot: deque[T] = deque(maxlen=1)

    def put(self, value: T) -> None:
        """Take the place of a value that nobody has taken yet."""
        self._slot.append(value)
        self.num_put += 1

    def take(self) -> T | None:
        """Return the newest value and empty the slot, or None."""
        try:
            value = self._slot.popleft()
        except IndexError:
            return None
        self.num_taken += 1
        return value

    @property
    def num_waiting(self) -> int:
        """1 while there is a value to take, else 0."""
        return len(self._slot)

    @property
    def num_superseded(self) -> int:
        """Values that were replaced before anyone took them; exact once both sides are at rest."""
        return max(0, self.num_put - self.num_taken - len(self._slot))
