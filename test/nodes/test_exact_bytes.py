# SPDX-License-Identifier: Apache-2.0
"""Messages as the middleware serialises them, cut to what they are."""

import pytest

pytest.importorskip('rclpy', reason='serialised by ROS')
from rclpy.serialization import deserialize_message, serialize_message

from oxygen_ros.msg import SceneGraph, Target
from oxygen_ros.replay.output_types import exact_bytes, output_types


@pytest.mark.parametrize(
    'message',
    [
        Target(joint_names=['elbow'], positions=[0.5], held=True, hold_reason='no_observation'),
        Target(
            joint_names=['a', 'b'],
            positions=[0.5, 1.0],
            chunk_ids=[3],
            observation_ids=[4],
            weights=[1.0],
        ),
        Target(),
        SceneGraph(),
    ],
)
def test_a_strict_reader_takes_what_is_left_and_nothing_is_missing(message):
    msgtype = f'oxygen_ros/msg/{type(message).__name__}'
    data = serialize_message(message)
    for padded in (data, data + bytes(12)):
        exact = exact_bytes(padded, msgtype)
        assert exact == exact_bytes(exact, msgtype) and len(data) - 20 < len(exact) <= len(data)
        output_types().deserialize_cdr(exact, msgtype)  # strict
        assert deserialize_message(exact, type(message)) == message
