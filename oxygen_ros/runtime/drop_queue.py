# SPDX-License-Identifier: Apache-2.0
"""A bounded queue that never blocks its producers: when it is full, the least important goes."""

from __future__ import annotations

from collections import Counter, deque
import threading
from typing import Generic, TypeVar

Item = TypeVar('Item')


class DropQueue(Generic[Item]):
    """First in, first out. Any thread may call any method.

    When it is full, a new item takes the place of the oldest one of the lowest priority, or is
    itself left out where its own priority is lower than that of everything waiting.

    :param num_priorities: priorities are 0 (goes first when room is short) to this, exclusive.
    """

    def __init__(self, max_items: int, num_priorities: int) -> None:
        if max_items < 1:
            raise ValueError(f'max_items: expected at least 1, got {max_items}')
        self.max_items = max_items
        self._lock = threading.Lock()
        self._waiting: list[deque[tuple[int, str, Item]]] = [
            deque() for _ in range(num_priorities)
        ]
        self._num_waiting = 0
        self._num_put = 0
        self.num_accepted = 0  # since the start, without those that were dropped later
        self._dropped: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._num_waiting

    def put(self, item: Item, priority: int, kind: str) -> bool:
        """Add an item; False where it was left out.

        :param kind: under what to count it if it is dropped.
        """
        with self._lock:
            if self._num_waiting == self.max_items:
                lowest = next(level for level, items in enumerate(self._waiting) if items)
                if lowest > priority:
                    self._dropped[kind] += 1
                    return False
                self._dropped[self._waiting[lowest].popleft()[1]] += 1
                self._num_waiting -= 1
                self.num_accepted -= 1
            self._waiting[priority].append((self._num_put, kind, item))
            self._num_put += 1
            self._num_waiting += 1
            self.num_accepted += 1
            return True

    def take(self, max_items: int) -> list[Item]:
        """Remove and return the oldest items, oldest first; may be empty."""
        taken: list[Item] = []
        with self._lock:
            while self._num_waiting and len(taken) < max_items:
                oldest = min(
                    (items for items in self._waiting if items), key=lambda items: items[0][0]
                )
                taken.append(oldest.popleft()[2])
                self._num_waiting -= 1
        return taken

    def dropped(self) -> Counter[str]:
        """Return how many were dropped since the start, by kind."""
        with self._lock:
            return self._dropped.copy()
