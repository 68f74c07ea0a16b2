# SPDX-License-Identifier: Apache-2.0
"""Recorded stamps are moved to now; what lies between them stays, and loops never go back."""

from made_bags import joint_state, STORE
import pytest

from oxygen_ros.replay.restamp import read_stamp, StampShift, write_stamp

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
NOW = 1_800_000_000 * SECOND


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
