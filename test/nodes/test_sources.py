# SPDX-License-Identifier: Apache-2.0
"""The generated cameras and the bag player, each in its own process, heard over DDS."""

from itertools import pairwise
from pathlib import Path
import signal
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the sources are ROS nodes')
from listener import Listener, Source, stamp_ns
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

sys.path.append(str(Path(__file__).resolve().parents[1] / 'replay'))
from made_bags import make_bag, picture, Plan, START_NS

from oxygen_ros.ingest import decode_compressed, decode_image
from oxygen_ros.nodes.sources.generated_scene import MAX_BYTES, render_scene

SECOND = 1_000_000_000
TOPICS = {
    'left/image_raw': Image,
    'right/image_raw/compressed': CompressedImage,
    'joint_states': JointState,
    'instruction': String,
}


@pytest.fixture
def start():
    """Start a source and, before it, a listener."""
    opened = []

    def start_source(module, parameters, topics):
        listener = Listener(topics)
        opened.append(listener.close)
        source = Source(module, parameters)
        opened.append(source.kill)
        return source, listener

    yield start_source
    for close in reversed(opened):
        close()


def assert_fresh_and_rising(messages):
    """Stamps rise, and none is far from its arrival."""
    stamps = [stamp_ns(message) for _, message in messages]
    assert stamps == sorted(set(stamps))
    for arrived_ns, message in messages:
        assert -50_000_000 < arrived_ns - stamp_ns(message) < SECOND


def test_a_looped_recording_comes_with_stamps_of_now_that_never_go_back(start, tmp_path):
    bag = make_bag(tmp_path / 'bag', Plan(num_frames=8, clock_ns=2_000_000))
    source, listener = start('bag_player', {'bag': bag, 'loop': 'true'}, TOPICS)
    listener.wait_for(
        lambda received: (
            len(received) == 4
            and all(len(received[topic]) >= 20 for topic in TOPICS if topic != 'instruction')
        )
    )
    for topic in ('left/image_raw', 'right/image_raw/compressed', 'joint_states'):
        assert_fresh_and_rising(listener.received[topic])
    assert {message.data for _, message in listener.received['instruction']} == {'first', 'second'}
    assert len(listener.received['instruction']) >= 3  # sent again with each loop
    left = [stamp_ns(message) for _, message in listener.received['left/image_raw']]
    right = [stamp_ns(message) for _, message in listener.received['right/image_raw/compressed']]
    assert {b - a for a, b in pairwise(left)} >= {50_000_000}
    # the skew between the cameras is that of the recording, to the nanosecond
    assert len({stamp + 3_000_000 for stamp in left} & set(right)) >= 15
    for topic in ('left/image_raw', 'right/image_raw/compressed'):
        assert_pictures(listener.received[topic])
    status, output, _ = source.end(signal.SIGTERM)
    assert status == 0 and 'Traceback' not in output
    assert output.count('not played: /chatter') == 1


def assert_pictures(messages):
    """The pixels are those of the recording, in its order."""
    pictures = [picture(number) for number in range(8)]
    numbers = []
    for _, message in messages:
        if hasattr(message, 'format'):
            image = decode_compressed(message.format, message.data)
        else:
            image = decode_image(
                message.encoding,
                message.height,
                message.width,
                message.step,
                message.is_bigendian,
                message.data,
            )
        numbers += [number for number, same in enumerate(pictures) if np.array_equal(image, same)]
    assert len(numbers) == len(messages)
    assert sum(b == (a + 1) % 8 for a, b in pairwise(numbers)) >= len(numbers) - 3


@pytest.mark.slow
def test_a_recording_ends_by_itself_and_an_offset_keeps_the_instruction(start, tmp_path):
    bag = make_bag(tmp_path / 'bag', Plan(num_frames=320))
    source, listener = start(
        'bag_player',
        {'bag': bag, 'start_offset': 4, 'rate': 2},
        {'instruction': String, 'joint_states': JointState},
    )
    listener.wait_for(
        lambda received: (
            {message.data for _, message in received['instruction']} == {'first', 'second'}
        )
    )
    status, output, _ = source.end()
    assert status == 0, output
    states = [message for _, message in listener.received['joint_states']]
    assert min(state.position[0] for state in states) >= 8.0 - 1e-9
    gaps_ns = [stamp_ns(b) - stamp_ns(a) for a, b in pairwise(states)]
    assert min(gaps_ns) == 25_000_000  # at twice the pace


WRONG_STARTS = [
    ('bag_player', {}, 'bag: expected the path of a recording, got nothing'),
    ('bag_player', {'bag': '/no/such'}, '/no/such: expected a rosbag2 recording, got nothing'),
    ('bag_player', {'bag': __file__}, 'expected an MCAP or SQLite file, got one that begins'),
    ('bag_player', {'rate': 0.0}, 'rate: expected 0.01 to 100, got 0'),
    ('bag_player', {'loop': 3}, 'loop: expected a bool, got 3'),
    ('camera_source', {'width': 2.5}, 'width: expected a integer, got 2.5'),
    ('camera_source', {'cameras': '[a, a]'}, 'cameras: expected different names'),
    ('camera_source', {'rate': 3}, 'rate: expected one of the parameters cameras, width'),
]


def test_a_recording_may_wait_until_all_of_it_is_heard(start, tmp_path):
    bag = make_bag(tmp_path / 'bag', Plan(num_frames=40))
    topics = dict(TOPICS)
    late = {'left/image_raw': topics.pop('left/image_raw')}
    source, early = start('bag_player', {'bag': bag, 'wait_for_listeners': 'true'}, topics)
    early.wait_for(lambda received: early._node.count_publishers('joint_states'))
    early.spin_for(0.5)
    assert not any(early.received.values()) and source.process.poll() is None
    created_ns = time.time_ns()
    listener = Listener(late)
    try:
        listener.wait_for(lambda received: received['left/image_raw'])
    finally:
        listener.close()
    early.wait_for(lambda received: received['joint_states'])
    # Images come at best effort, and a busy machine may lose some.
    (_, state), *_ = early.received['joint_states']
    assert created_ns < stamp_ns(state) and state.position[0] < 5.0  # from its beginning


def test_a_wrong_start_ends_in_one_line_and_a_status():
    started = [Source(module, parameters) for module, parameters, _ in WRONG_STARTS]
    for source, (module, _, line) in zip(started, WRONG_STARTS):
        status, output, _ = source.end()
        assert status == 1
        assert output.startswith(f'{module}: ') and line in output
        assert output.count('\n') == 1


@pytest.mark.parametrize(
    'signals',
    [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGINT]],
    ids=['ctrl-c', 'terminate', 'ctrl-c twice'],
)
def test_generated_cameras_stream_until_a_signal_and_end_cleanly(start, signals):
    topics = {
        'front/image_raw': Image,
        'wrist/image_raw': Image,
        'joint_states': JointState,
        'instruction': String,
    }
    source, listener = start(
        'camera_source',
        {'cameras': '[front, wrist]', 'width': 640, 'height': 480, 'num_joints': 6},
        topics,
    )
    listener.wait_for(
        lambda received: (
            len(received) == 4
            and min(len(received['front/image_raw']), len(received['wrist/image_raw'])) >= 15
        )
    )
    status, output, seconds = source.end(*signals)
    assert (status, output) == (0, '')
    assert seconds < 3.0
    for topic in ('front/image_raw', 'wrist/image_raw', 'joint_states'):
        assert_fresh_and_rising(listener.received[topic])
    images = [message for _, message in listener.received['front/image_raw']]
    assert (images[0].encoding, images[0].height, images[0].width) == ('rgb8', 480, 640)
    assert images[0].data != images[1].data  # things move
    assert listener.received['wrist/image_raw'][0][1].data != images[0].data
    state = listener.received['joint_states'][0][1]
    assert list(state.name) == [f'joint_{index}' for index in range(6)]
    assert len(state.position) == len(state.velocity) == 6
    assert len(listener.received['instruction']) == 1


def test_the_scene_moves_differs_by_camera_and_fits_its_memory():
    for num_cameras, height, width in ((3, 240, 320), (4, 480, 640), (1, 16, 16)):
        cameras = [
            render_scene(camera, num_cameras, height, width) for camera in range(num_cameras)
        ]
        assert sum(frame.nbytes for frames in cameras for frame in frames) <= MAX_BYTES
        for frames in cameras:
            assert all(frame.shape == (height, width, 3) for frame in frames)
            following = [*frames[1:], frames[0]]
            moved = [np.any(a != b) for a, b in zip(frames, following)]
            assert all(moved) or min(height, width) < 100
        assert num_cameras == 1 or np.any(cameras[0][0] != cameras[1][0])


def test_a_damaged_recording_plays_and_says_what_is_lost(start, tmp_path):
    bag = make_bag(tmp_path / 'bag', Plan(num_frames=100))
    [file] = bag.glob('*.mcap')
    file.write_bytes(file.read_bytes()[:-20_000])
    source, listener = start('bag_player', {'bag': bag, 'loop': 'true'}, TOPICS)
    listener.wait_for(lambda received: len(received) == 4)
    status, output, _ = source.end(signal.SIGINT)
    assert status == 0
    assert 'WARN' in output and ' lost (' in output and 'Traceback' not in output
    assert START_NS // SECOND not in {
        message.header.stamp.sec for _, message in listener.received['left/image_raw']
    }
