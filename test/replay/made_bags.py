# SPDX-License-Identifier: Apache-2.0
"""Small recordings made by rosbags' own writer, so that the tests stand without recorded data."""

from dataclasses import dataclass

import cv2
from mcap.writer import Writer as McapWriter
import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores

STORE = get_typestore(Stores.ROS2_KILTED)
TYPES = STORE.types
START_NS = 1_700_000_000_000_000_000
JOINTS = ['shoulder', 'elbow']


@dataclass(frozen=True)
class Plan:
    """What a made recording holds."""

    num_frames: int = 8
    period_ns: int = 50_000_000
    skew_ns: int = 3_000_000  # between the two cameras
    clock_ns: int = 0  # of header stamps before the time of recording
    plugin: StoragePlugin = StoragePlugin.MCAP
    compression: CompressionMode = CompressionMode.NONE
    extra_topic: bool = True


def time_of(stamp_ns):
    return TYPES['builtin_interfaces/msg/Time'](*divmod(stamp_ns, 1_000_000_000))


def header(stamp_ns, frame_id=''):
    return TYPES['std_msgs/msg/Header'](time_of(stamp_ns), frame_id)


def picture(number):
    """[12, 16, 3] RGB, different for each number."""
    image = np.full((12, 16, 3), 40, np.uint8)
    image[:, number % 16] = (200, number % 256, 90)
    return image


def raw_image(stamp_ns, number):
    return TYPES['sensor_msgs/msg/Image'](
        header(stamp_ns, 'left'), 12, 16, 'rgb8', 0, 48, picture(number).ravel()
    )


def compressed_image(stamp_ns, number):
    data = cv2.imencode('.png', picture(number)[..., ::-1])[1]
    return TYPES['sensor_msgs/msg/CompressedImage'](header(stamp_ns, 'right'), 'png', data.ravel())


def joint_state(stamp_ns, number):
    values = np.array([number / 10, -number / 10])
    nothing = np.zeros(0)
    return TYPES['sensor_msgs/msg/JointState'](header(stamp_ns), JOINTS, values, nothing, nothing)


def text(data):
    return TYPES['std_msgs/msg/String'](data)


def make_bag(path, plan=None):
    """Write a recording: two cameras (one compressed), joints, an instruction, something else."""
    plan = plan or Plan()
    writer = Writer(path, version=9, storage_plugin=plan.plugin)
    if plan.compression is not CompressionMode.NONE:
        writer.set_compression(plan.compression, CompressionFormat.ZSTD)
    with writer:

        def connect(topic, msgtype):
            connection = writer.add_connection(topic, msgtype, typestore=STORE)
            return lambda ns, message: writer.write(
                connection, ns, STORE.serialize_cdr(message, msgtype)
            )

        left = connect('/left/image_raw', 'sensor_msgs/msg/Image')
        right = connect('/right/image/compressed', 'sensor_msgs/msg/CompressedImage')
        joints = connect('/joint_states', 'sensor_msgs/msg/JointState')
        instruction = connect('/instruction', 'std_msgs/msg/String')
        other = connect('/chatter', 'std_msgs/msg/String') if plan.extra_topic else None
        instruction(START_NS, text('first'))
        for number in range(plan.num_frames):
            ns = START_NS + number * plan.period_ns
            stamp_ns = ns - plan.clock_ns
            if number == plan.num_frames // 2:
                instruction(ns, text('second'))
            left(ns, raw_image(stamp_ns, number))
            joints(ns, joint_state(stamp_ns, number))
            if other is not None:
                other(ns, text('hello'))
            right(ns + plan.skew_ns, compressed_image(stamp_ns + plan.skew_ns, number))
    return path


def make_mcap(file, num_messages, **options):
    """Write one MCAP file: joint states, 10 ms apart.

    :param options: of the `mcap` library's writer; without any there are chunks with checksums.
    """
    msgtype = 'sensor_msgs/msg/JointState'
    definition, _ = STORE.generate_msgdef(msgtype, ros_version=2)
    with file.open('wb') as stream:
        writer = McapWriter(stream, **options)
        writer.start(profile='ros2')
        schema = writer.register_schema(msgtype, 'ros2msg', definition.encode())
        channel = writer.register_channel('/joint_states', 'cdr', schema)
        for number in range(num_messages):
            ns = START_NS + number * 10_000_000
            data = bytes(STORE.serialize_cdr(joint_state(ns, number), msgtype))
            writer.add_message(channel, ns, data, ns)
        writer.finish()
    return file


def storage_file(path):
    """The one storage file of a made recording."""
    [file] = [file for file in path.iterdir() if file.name != 'metadata.yaml']
    return file
