# SPDX-License-Identifier: Apache-2.0
"""The slot holds the newest value, gives each at most once and counts the rest."""

from threading import Thread

from oxygen_ros.ingest import Latest


def test_the_newest_wins_and_is_given_once():
    slot = Latest()
    assert slot.take() is None
    for value in (1, 2, 3):
        slot.put(value)
    assert slot.take() == 3
    assert slot.take() is None
    assert (slot.num_put, slot.num_taken, slot.num_superseded) == (3, 1, 2)


def test_between_two_threads_values_only_move_forward_and_none_is_counted_twice():
    slot = Latest()
    taken = []

    def consume():
        while not taken or taken[-1] != 20_000:
            value = slot.take()
            if value is not None:
                taken.append(value)

    consumer = Thread(target=consume)
    consumer.start()
    for value in range(1, 20_001):
        slot.put(value)
    consumer.join()
    assert taken == sorted(set(taken))
    assert slot.num_put == 20_000 == slot.num_taken + slot.num_superseded
