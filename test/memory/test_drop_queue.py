# SPDX-License-Identifier: Apache-2.0
"""When the queue is full, the least important goes."""

from __future__ import annotations

from hypothesis import given, strategies
import pytest

from oxygen_ros.runtime.drop_queue import DropQueue


@given(strategies.lists(strategies.integers(0, 3), max_size=60), strategies.integers(1, 8))
def test_a_full_queue_drops_the_oldest_of_the_lowest_priority(
    priorities: list[int], size: int
) -> None:
    queue: DropQueue[int] = DropQueue(size, 4)
    expected: list[int] = []
    for number, priority in enumerate(priorities):
        taken = queue.put(number, priority, str(priority))
        expected.append(number)
        if len(expected) > size:
            lowest = min(priorities[waiting] for waiting in expected)
            gone = next(waiting for waiting in expected if priorities[waiting] == lowest)
            expected.remove(gone)
            assert taken == (gone != number)
        else:
            assert taken
    assert sum(queue.dropped().values()) == len(priorities) - len(expected)
    assert queue.num_accepted == len(queue) == len(expected)
    assert queue.take(100) == expected


def test_a_queue_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match='max_items: expected'):
        DropQueue(0, 1)
