# SPDX-License-Identifier: Apache-2.0
"""Cameras, joints and instruction are found in a recording and get the node's topics."""

from dataclasses import dataclass, field

from made_bags import compressed_image, joint_state, make_bag, Plan, raw_image, STORE, text
import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer

from oxygen_ros.replay.bag import BagError, open_bag
from oxygen_ros.replay.layout import camera_name, discover


@pytest.mark.parametrize(
    ('topic', 'camera'),
    [
        ('/front/image/compressed', 'front'),
        ('/front/image_raw', 'front'),
        ('/front/image_raw/compressed', 'front'),
        ('/robot/wrist/image_rect', 'robot/wrist'),
        ('/image', 'image'),
        ('/image_raw', 'image_raw'),
        ('/compressedimage', 'compressedimage'),
        ('/front/image', 'front'),
        ('front/image', 'front'),
    ],
)
def test_a_camera_is_named_by_its_topic(topic, camera):
    assert camera_name(topic) == camera


def test_what_a_recording_holds_is_found(tmp_path):
    with open_bag(make_bag(tmp_path / 'bag')) as bag:
        layout = discover(bag)
    assert layout.cameras == ('left', 'right')
    assert layout.joint_names == ('shoulder', 'elbow')
    assert layout.instruction_topic == '/instruction'
    assert layout.topics == {
        '/left/image_raw': 'left/image_raw',
        '/right/image/compressed': 'right/image_raw/compressed',
        '/joint_states': 'joint_states',
        '/instruction': 'instruction',
    }
    assert layout.ignored == {'/chatter': 'std_msgs/msg/String'}
    assert layout.rates_hz['/left/image_raw'] == pytest.approx(20.0, rel=0.05)


@dataclass
class Recorded:
    """A topic of a recording to be made: its type and a message by number."""

    msgtype: str
    make: object
    numbers: list = field(default_factory=lambda: [0, 1])


def record(path, topics):
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for name, topic in topics.items():
            connection = writer.add_connection(name, topic.msgtype, typestore=STORE)
            for number in topic.numbers:
                message = topic.make(10**9 * (number + 1), number)
                writer.write(
                    connection, 10**9 * (number + 1), STORE.serialize_cdr(message, topic.msgtype)
                )
    return path


def depth(stamp_ns, number):
    image = raw_image(stamp_ns, number)
    image.encoding = '16UC1'
    return image


RAW = 'sensor_msgs/msg/Image'
COMPRESSED = 'sensor_msgs/msg/CompressedImage'
JOINTS = 'sensor_msgs/msg/JointState'


def test_of_a_camera_recorded_twice_the_fuller_topic_is_played(tmp_path):
    path = record(
        tmp_path / 'bag',
        {
            '/cam/image_raw': Recorded(RAW, raw_image, [0, 1]),
            '/cam/image_raw/compressed': Recorded(COMPRESSED, compressed_image, [0, 1, 2]),
            '/other/image_raw': Recorded(RAW, raw_image, [0, 1]),
            '/other/image_raw/compressed': Recorded(COMPRESSED, compressed_image, [0, 1]),
        },
    )
    with open_bag(path) as bag:
        layout = discover(bag)
    assert [camera.compressed for camera in layout.camera_topics] == [True, False]
    assert set(layout.ignored) == {'/cam/image_raw', '/other/image_raw/compressed'}


def test_depth_is_left_out_beside_colour_and_kept_alone(tmp_path):
    both = record(
        tmp_path / 'both',
        {'/cam/image_raw': Recorded(RAW, raw_image), '/cam/depth/image_raw': Recorded(RAW, depth)},
    )
    with open_bag(both) as bag:
        assert discover(bag).cameras == ('cam',)
    alone = record(tmp_path / 'alone', {'/cam/depth/image_raw': Recorded(RAW, depth)})
    with open_bag(alone) as bag:
        assert discover(bag).cameras == ('cam/depth',)


def test_the_joint_states_of_the_robot_are_preferred_to_a_fuller_topic(tmp_path):
    path = record(
        tmp_path / 'bag',
        {
            '/fake/states': Recorded(JOINTS, joint_state, [0, 1, 2, 3]),
            '/arm/joint_states': Recorded(JOINTS, joint_state),
        },
    )
    with open_bag(path) as bag:
        layout = discover(bag)
    assert layout.joint_topic == '/arm/joint_states'
    assert layout.cameras == ()


def test_a_first_message_that_cannot_be_read_is_left_to_the_node(tmp_path):
    path = tmp_path / 'bag'
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        writer.write(writer.add_connection('/cam/image_raw', RAW, typestore=STORE), 1, b'\0\1\0\0')
    with open_bag(path) as bag:
        assert discover(bag).cameras == ('cam',)


def test_a_recording_without_messages_is_refused(tmp_path):
    path = record(tmp_path / 'bag', {'/cam/image_raw': Recorded(RAW, raw_image, [])})
    with open_bag(path) as bag, pytest.raises(BagError, match='with messages, got one without'):
        discover(bag)


def test_only_known_names_are_taken_for_the_instruction(tmp_path):
    path = record(
        tmp_path / 'bag',
        {
            '/chatter': Recorded(
                'std_msgs/msg/String', lambda ns, number: text('noise'), [0, 1, 2]
            ),
            '/task': Recorded('std_msgs/msg/String', lambda ns, number: text('sort'), [0]),
        },
    )
    with open_bag(path) as bag:
        assert discover(bag).instruction_topic == '/task'


def test_messages_are_what_was_written(tmp_path):
    with open_bag(make_bag(tmp_path / 'bag', Plan(num_frames=3))) as bag:
        states = [bag.deserialize(message) for message in bag.messages({'/joint_states'})]
    np.testing.assert_allclose(
        [state.position for state in states], [[0.0, 0.0], [0.1, -0.1], [0.2, -0.2]]
    )
