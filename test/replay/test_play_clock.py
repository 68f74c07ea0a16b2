# SPDX-License-Identifier: Apache-2.0
"""The pace of a recording, on a clock that only the test moves."""

from threading import Thread

import pytest

from oxygen_ros.replay.play_clock import PlayClock

SECOND = 1_000_000_000


class Steady:
    """A clock in ns."""

    now_ns = 5 * SECOND

    def __call__(self):
        return self.now_ns


@pytest.fixture
def steady():
    return Steady()


@pytest.mark.parametrize('rate', [0.5, 1.0, 4.0])
def test_it_advances_at_its_rate(steady, rate):
    clock = PlayClock(rate, steady)
    steady.now_ns += 3 * SECOND
    assert clock.position_ns() == round(3 * SECOND * rate)


def test_paused_it_stands_still_and_says_for_how_long(steady):
    clock = PlayClock(2.0, steady)
    steady.now_ns += SECOND
    assert clock.pause(True) == 0 and clock.is_paused
    steady.now_ns += 7 * SECOND
    assert clock.position_ns() == 2 * SECOND
    assert clock.pause(True) == 7 * SECOND  # again: what has stood so far
    steady.now_ns += SECOND
    assert clock.pause(False) == SECOND and not clock.is_paused
    steady.now_ns += SECOND
    assert clock.position_ns() == 4 * SECOND
    assert clock.pause(False) == 0


def test_what_is_due_does_not_wait_and_a_stop_ends_every_wait(steady):
    clock = PlayClock(1.0, steady)
    assert clock.wait_until(0)
    clock.pause(True)
    results = []
    waiting = Thread(target=lambda: results.append(clock.wait_until(-1)))
    waiting.start()
    clock.stop()
    waiting.join(10.0)
    assert results == [False] and not clock.wait_until(0)


def test_a_wait_goes_on_when_the_pause_ends(steady):
    clock = PlayClock(1.0, steady)
    clock.pause(True)
    results = []
    waiting = Thread(target=lambda: results.append(clock.wait_until(0)))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    clock.pause(False)
    waiting.join(10.0)
    assert results == [True]
