# SPDX-License-Identifier: Apache-2.0
"""Every recording of the shared data has one documented outcome, row by row in the table below.

Every image and joint state goes through the node's decoders. A row says how many messages are read
and lost, how many images of each camera decode, and what is refused.
"""

from dataclasses import dataclass, field

import cv2
import numpy as np
import pytest

from oxygen_ros.ingest import (
    decode_compressed,
    decode_image,
    ImageError,
    JointMapper,
    JointStateError,
)
from oxygen_ros.replay.bag import BagError, open_bag
from oxygen_ros.replay.layout import discover


@dataclass(frozen=True)
class Read:
    """A recording that is read."""

    messages: int
    images: dict = field(default_factory=dict)  # camera: number that decode
    lost: int = 0
    states: int = 0  # joint states that can be used
    refused_images: int = 0
    refused_states: int = 0
    because: str = ''  # in every refusal
    damage: str = ''
    note: str = ''
    sizes: frozenset = frozenset()  # (height, width) of the images, where the row names them


@dataclass(frozen=True)
class Refused:
    """A recording that cannot be read, and what the error says."""

    because: str


def bridge(episodes, **changes):
    """Three cameras, ten steps and one instruction an episode."""
    steps = 10 * episodes
    row = {
        'messages': 5 * steps + episodes,
        'states': steps,
        'images': {f'camera_{number}': steps for number in range(3)},
    }
    return Read(**{**row, **changes})


def front(**changes):
    """Ten images of one camera."""
    return Read(**{'messages': 10, 'images': {'front': 10}, **changes})


def no_front(because, num_refused=10):
    """Images that are not usable, each for the same reason."""
    return front(images={'front': 10 - num_refused}, refused_images=num_refused, because=because)


OUTCOMES = {
    'real/bridge_3cam_mcap': bridge(25),
    'real/bridge_3cam_db3': bridge(8),
    'real/bridge_3cam_raw_mcap': bridge(4),
    'real/donkey_compressed_mcap': Read(3000, {'front': 1000}, states=1000),
    'real/donkey_raw_bgr8_db3': Read(180, {'front': 60}, states=60),
    'real/raspicam_aruco_mcap': Read(16, {'raspicam_node': 1}),
    'real/rosnumpy_image_mcap': Read(5, {'image': 1, 'compressedimage': 1}),
    'real/joint_states_1khz_mcap': Read(2725, states=2725),
    'real/libero_SIM_two_camera_frame': Refused('got a folder without storage files'),
    'native/nav2_clock_zstd_mcap': Read(693),
    'native/pj_imu_pose_battery_db3': Read(4695),
    'native/rosbag2_empty_db3': Read(0),
    'native/rosbag2_file_compression': Read(775),
    'native/rosbag2_mcap_bag_with_topics_and_service_events': Read(10),
    'native/rosbag2_mcap_talker': Read(20),
    'native/rosbag2_mcap_wbag': Read(6074),
    'native/rosbag2_mcap_wrong_rmw_test': Refused('serialised as cdr, got wrong_format'),
    'native/rosbag2_message_compression': Read(1127),
    'native/rosbag2_split_nometa_mcap': Read(3177, note='no metadata.yaml'),
    'native/rosbag2_sqlite3_talker': Read(20),
    'native/rosbag2_sqlite3_wbag': Read(6074),
    'native/rosbag2_sqlite3_wrong_rmw_test': Refused('serialised as cdr, got wrong_format'),
    'odd/cam0_frozen_pixels_fresh_stamps': bridge(6),
    'odd/cam1_stops_at_6s': bridge(
        6, messages=272, images={'camera_0': 60, 'camera_1': 26, 'camera_2': 60}
    ),
    'odd/cam2_never': bridge(6, messages=246, images={'camera_0': 60, 'camera_1': 60}),
    'odd/compressed_depth': no_front('which is depth'),
    'odd/data_short': no_front('data: expected 57600 bytes (120 rows of 480), got 57'),
    'odd/empty_mcap': Read(0),
    'odd/enc_16UC1_depth_mm': no_front('16UC1, which is depth'),
    'odd/enc_8UC3': front(),
    'odd/enc_bgra8': front(),
    'odd/enc_mono16_be': front(),
    'odd/enc_mono16_le': front(),
    'odd/enc_mono8': front(),
    'odd/enc_rgb8': front(),
    'odd/enc_rgba8': front(),
    'odd/enc_unknown_name': no_front("got 'rgb888_vendor'"),
    'odd/enc_yuv422_yuy2': front(),
    'odd/frame_id_empty': front(),
    'odd/joint_states_len_mismatch': bridge(
        6, states=0, refused_states=60, because='position: expected 7 values'
    ),
    'odd/joint_states_nan': bridge(
        6, states=27, refused_states=33, because='position: expected finite values'
    ),
    'odd/jpeg_empty': no_front('a JPEG or PNG image, got no bytes'),
    'odd/jpeg_format_long': front(),
    'odd/jpeg_format_wrong': front(),
    'odd/jpeg_garbage': no_front('a JPEG or PNG image'),
    'odd/jpeg_truncated': no_front('a whole JPEG image'),
    'odd/no_metadata_db3': bridge(8, note='no metadata.yaml'),
    'odd/no_metadata_mcap': bridge(6, note='no metadata.yaml'),
    'odd/png_compressed': front(),
    'odd/size_changes_midstream': front(sizes=frozenset({(120, 160), (60, 80)})),
    'odd/size_zero': no_front('height: expected at least 1 pixels, got 0'),
    'odd/stamp_future_10s': front(),
    'odd/stamp_zero': front(),
    'odd/step_padded_rgb8': front(),
    'odd/step_too_small': no_front('step: expected at least 480 bytes'),
    'odd/step_zero': no_front('step: expected at least 480 bytes'),
    'odd/truncated_db3': bridge(
        0,
        messages=193,
        lost=215,
        damage='malformed',
        states=38,
        images={'camera_0': 38, 'camera_1': 38, 'camera_2': 38},
    ),
    'odd/truncated_mcap': bridge(
        0,
        messages=206,
        lost=100,
        damage='cut off',
        states=40,
        images={'camera_0': 41, 'camera_1': 40, 'camera_2': 40},
    ),
    'odd/zero_length_mcap': Refused('got an empty file'),
    'odd/zstd_file_db3': bridge(6),
    'odd/zstd_storage_mcap': bridge(6),
}


def decode(message):
    if hasattr(message, 'format'):
        return decode_compressed(message.format, message.data)
    return decode_image(
        message.encoding,
        message.height,
        message.width,
        message.step,
        message.is_bigendian,
        message.data,
    )


@pytest.mark.parametrize('name', OUTCOMES)
def test_a_recording_has_its_documented_outcome(shared, name):
    expected = OUTCOMES[name]
    path = shared / 'data' / 'bags' / name
    if isinstance(expected, Refused):
        with pytest.raises(BagError, match='expected .*, got ') as caught:
            open_bag(path)
        assert name.rsplit('/', 1)[-1] in str(caught.value)
        assert expected.because in str(caught.value)
        return
    with open_bag(path) as bag:
        assert outcome(bag, expected) == expected


def outcome(bag, expected):
    """Read everything; return what came of it."""
    if not bag.num_messages:
        with pytest.raises(BagError, match='got one without any'):
            discover(bag)
        assert 'no messages' in bag.summary()
        return Read(len(list(bag.messages())))
    layout = discover(bag)
    camera_of = {camera.topic: camera.camera for camera in layout.camera_topics}
    mapper = JointMapper(layout.joint_names) if layout.joint_names else None
    images = dict.fromkeys(layout.cameras, 0)
    sizes, reasons = set(), []
    num_messages = states = refused_images = refused_states = 0
    for message in bag.messages():
        num_messages += 1
        try:
            if message.topic in camera_of:
                image = decode(bag.deserialize(message))
                images[camera_of[message.topic]] += 1
                sizes.add(image.shape[:2])
            elif message.topic == layout.joint_topic:
                state = bag.deserialize(message)
                mapper.map(state.name, state.position)
                states += 1
        except ImageError as error:
            refused_images += 1
            reasons.append(str(error))
        except JointStateError as error:
            refused_states += 1
            reasons.append(str(error))
    assert num_messages == bag.num_messages
    assert all(expected.because in reason for reason in reasons), reasons[:3]
    assert bool(expected.damage) == bool(bag.damage) and expected.damage in ''.join(bag.damage)
    assert expected.note in ''.join(bag.notes)
    return Read(
        num_messages,
        images,
        bag.num_lost,
        states,
        refused_images,
        refused_states,
        expected.because,
        expected.damage,
        expected.note,
        frozenset(sizes) if expected.sizes else frozenset(),
    )


def test_every_recording_of_the_shared_data_is_in_the_table(shared):
    folders = {
        f'{path.parent.name}/{path.name}'
        for path in (shared / 'data' / 'bags').glob('*/*')
        if path.is_dir()
    }
    assert folders == set(OUTCOMES)


def images_of(shared, name):
    with open_bag(shared / 'data' / 'bags' / name) as bag:
        [camera] = discover(bag).camera_topics
        return [decode(bag.deserialize(message)) for message in bag.messages({camera.topic})]


@pytest.mark.parametrize('encoding', ['8UC3', 'bgra8', 'rgba8'])
def test_the_same_pixels_in_another_layout_are_bit_equal(shared, encoding):
    reference = images_of(shared, 'odd/enc_rgb8')
    for image, same in zip(images_of(shared, f'odd/enc_{encoding}'), reference, strict=True):
        assert (image == same).all()


@pytest.mark.parametrize('name', ['step_padded_rgb8', 'png_compressed', 'frame_id_empty'])
def test_padding_png_and_an_empty_frame_id_change_no_pixel(shared, name):
    reference = images_of(shared, 'odd/enc_rgb8')
    for image, same in zip(images_of(shared, f'odd/{name}'), reference, strict=True):
        assert (image == same).all()


def test_both_byte_orders_of_mono16_are_the_same_picture(shared):
    little, big = (images_of(shared, f'odd/enc_mono16_{order}') for order in ('le', 'be'))
    for one, other, colour in zip(little, big, images_of(shared, 'real/donkey_raw_bgr8_db3')):
        assert (one == other).all()
        grey = cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY)
        assert np.corrcoef(one[..., 0].ravel(), grey.ravel())[0, 1] > 0.999


def test_yuv_is_close_to_the_colours_it_was_made_of(shared):
    reference = images_of(shared, 'real/donkey_raw_bgr8_db3')
    for image, same in zip(images_of(shared, 'odd/enc_yuv422_yuy2'), reference):
        assert abs(image.astype(int) - same).mean() < 1.0
