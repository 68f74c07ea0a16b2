# SPDX-License-Identifier: Apache-2.0
"""Messages are read ahead within a bound of memory; the reader's thread ends with the block."""

from threading import active_count, Event

import pytest

from oxygen_ros.replay.read_ahead import ReadAhead
from oxygen_ros.replay.storage import BagError, BagMessage


def message(number, num_bytes=100):
    return BagMessage(number, '/topic', 'type', bytes(num_bytes))


def test_all_messages_come_in_order():
    messages = [message(number) for number in range(1000)]
    with ReadAhead(iter(messages), max_bytes=1000) as ahead:
        assert list(ahead) == messages


def test_no_more_than_the_bound_is_read_ahead():
    num_read = 0
    stopped = Event()

    def source():
        nonlocal num_read
        for number in range(1000):
            num_read += 1
            if num_read == 11:
                stopped.set()
            yield message(number)

    with ReadAhead(source(), max_bytes=1000) as ahead:
        iterator = iter(ahead)
        next(iterator)
        assert stopped.wait(10)
        assert num_read <= 12  # ten waiting, one taken, one in the reader's hand
    assert num_read <= 12


def test_a_message_larger_than_the_bound_passes():
    messages = [message(number, 5000) for number in range(3)]
    with ReadAhead(iter(messages), max_bytes=1000) as ahead:
        assert list(ahead) == messages


def test_an_error_of_the_source_comes_after_the_messages_before_it():
    def source():
        yield message(1)
        raise BagError('path', 'more', 'less')

    taken = []
    with ReadAhead(source()) as ahead, pytest.raises(BagError, match='expected more, got less'):
        taken.extend(ahead)
    assert taken == [message(1)]


def test_leaving_early_ends_the_thread():
    before = active_count()
    with ReadAhead((message(number) for number in range(10**9)), max_bytes=1000) as ahead:
        next(iter(ahead))
    assert active_count() == before
