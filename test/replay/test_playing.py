# SPDX-License-Identifier: Apache-2.0
"""A recording is played at its pace, read ahead within bounds, with stamps moved to now."""

from threading import enumerate as all_threads
from threading import Event, Thread

from made_bags import joint_state, STORE
import pytest

from oxygen_ros.replay.playing import PlayClock, read_stamp, ReadAhead, StampShift, write_stamp
from oxygen_ros.replay.storage import BagError, BagMessage

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
NOW = 1_800_000_000 * SECOND


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
    assert clock.pause(True) == 0
    steady.now_ns += 7 * SECOND
    assert clock.position_ns() == 2 * SECOND
    assert clock.pause(True) == 7 * SECOND  # again: what has stood so far
    steady.now_ns += SECOND
    assert clock.pause(False) == SECOND
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
    waiting.join(60.0)
    assert results == [False] and not clock.wait_until(0)


def test_a_wait_goes_on_when_the_pause_ends(steady):
    clock = PlayClock(1.0, steady)
    clock.pause(True)
    results, begun, wait = [], Event(), clock._changed.wait
    clock._changed.wait = lambda *timeout_s: begun.set() or wait(*timeout_s)
    waiting = Thread(target=lambda: results.append(clock.wait_until(0)))
    waiting.start()
    assert begun.wait(60.0) and not results
    clock.pause(False)
    waiting.join(60.0)
    assert results == [True]


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
        assert stopped.wait(60.0)
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
    with ReadAhead((message(number) for number in range(10**9)), max_bytes=1000) as ahead:
        next(iter(ahead))
    assert 'read_ahead' not in {thread.name for thread in all_threads()}


def test_only_the_stamp_of_a_message_changes():
    data = bytes(STORE.serialize_cdr(joint_state(START + 5, 3), 'sensor_msgs/msg/JointState'))
    assert read_stamp(data) == START + 5
    moved = write_stamp(data, NOW + 7)
    assert read_stamp(moved) == NOW + 7
    assert (moved[:4], moved[12:]) == (data[:4], data[12:])
    assert write_stamp(moved, START + 5) == data


def test_big_endian_messages_are_moved_as_such():
    data = b'\x00\x00\x00\x00' + (3).to_bytes(4, 'big') + (4).to_bytes(4, 'big') + b'rest'
    assert read_stamp(data) == 3 * SECOND + 4
    assert write_stamp(data, 5 * SECOND + 6) == (
        b'\x00\x00\x00\x00' + (5).to_bytes(4, 'big') + (6).to_bytes(4, 'big') + b'rest'
    )


@pytest.mark.parametrize('data', [b'', bytes(11)])
def test_a_message_too_short_for_a_stamp_has_none(data):
    assert read_stamp(data) is None


def play(shift, now_ns, messages):
    shift.begin_loop(now_ns)
    return [shift.moved(topic, recorded_ns, stamp_ns) for topic, recorded_ns, stamp_ns in messages]


RECORDING = [
    ('a', START + ns, START + ns - latency)
    for ns, latency in ((0, 4_000), (50_000_000, 9_000), (100_000_000, 2_000))
]


def test_spacing_and_latency_are_kept():
    assert play(StampShift(START, 1.0), NOW, RECORDING) == [
        NOW - 4_000,
        NOW + 50_000_000 - 9_000,
        NOW + 100_000_000 - 2_000,
    ]


def test_another_pace_scales_the_spacing():
    assert play(StampShift(START, 2.0), NOW, RECORDING) == [
        NOW - 2_000,
        NOW + 25_000_000 - 4_500,
        NOW + 50_000_000 - 1_000,
    ]


def test_skews_between_cameras_are_kept():
    shift = StampShift(START, 1.0)
    for now_ns in (NOW, NOW + SECOND):
        left, right = play(
            shift, now_ns, [('left', START, START), ('right', START, START + 3_000)]
        )
        assert right - left == 3_000


def test_a_later_loop_lies_behind_an_earlier_one_whatever_the_clock_says():
    shift = StampShift(START, 1.0)
    newest = 0
    for now_ns in (NOW, NOW + 200_000_000, NOW + 210_000_000, NOW - SECOND, NOW + 10 * SECOND):
        stamps = play(shift, now_ns, RECORDING)
        assert newest < stamps[0] and stamps == sorted(stamps)
        assert stamps[0] >= now_ns - 4_000
        newest = stamps[-1]


def test_zero_means_not_set_and_stays():
    assert play(StampShift(START, 1.0), NOW, [('a', START, 0)]) == [0]


def test_stamps_ahead_of_their_recording_stay_ahead_and_do_not_run_away():
    shift = StampShift(START, 1.0)
    ahead = [('a', START, START), ('b', START, START + 10 * SECOND)]
    for loop in range(5):
        now_ns = NOW + loop * SECOND
        assert play(shift, now_ns, ahead) == [now_ns, now_ns + 10 * SECOND]


def test_stamps_of_a_simulators_clock_are_moved_to_now():
    messages = [('a', START + ns, 12 * SECOND + ns) for ns in (0, 50_000_000)]
    assert play(StampShift(START, 1.0), NOW, messages) == [NOW, NOW + 50_000_000]


def test_a_stamp_that_no_message_can_hold_becomes_not_set():
    messages = [('a', START, START), ('a', START, START - NOW), ('a', START, (1 << 31) * SECOND)]
    assert play(StampShift(START, 1.0), NOW, messages) == [NOW, 0, 0]
