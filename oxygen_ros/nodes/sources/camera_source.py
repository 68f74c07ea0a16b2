# SPDX-License-Identifier: Apache-2.0
"""Cameras, joints and an instruction without a robot: what the demo runs the node against."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
import json
import math
from pathlib import Path
import re
import sys
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, qos_profile_sensor_data, QoSProfile
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import String

from ...errors import OxygenError
from ...setting import setting
from ..parameters import declare_fixed
from ..process import run_node
from .generated_scene import render_scene

_MOTION_PERIOD_S = 8.0
_MOTION_RAD = 0.3


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What the source is told."""

    cameras: tuple[str, ...] = setting(
        ('front', 'left_wrist', 'right_wrist'), 'Names of the cameras'
    )
    width: int = setting(320, 'Width of the images', 'px', low=16, high=4096)
    height: int = setting(240, 'Height of the images', 'px', low=16, high=4096)
    rate_hz: float = setting(30.0, 'Images a second of each camera', 'Hz', low=0.1, high=1000.0)
    num_joints: int = setting(7, 'Joints, named joint_0, joint_1 and so on', low=1, high=256)
    joints: tuple[str, ...] = setting((), 'Names of the joints, in place of num_joints', none='')
    joint_rate_hz: float = setting(100.0, 'Joint states a second', 'Hz', low=1.0, high=1000.0)
    record_file: str = setting(
        '',
        'At the end, write the stamps of the images of each camera there (JSON); empty: do not',
    )
    instruction: str = setting('put the cup on the plate', 'What the robot is told to do')


class CameraSource(Node):
    """Publishes `<camera>/image_raw`, `joint_states` and, latched, `instruction`.

    The frames are drawn once, as messages: publishing one costs a new stamp and a copy.

    :raises OxygenError: a parameter is out of its range.
    """

    def __init__(self, node_name: str = 'camera_source', **kwargs: Any) -> None:
        super().__init__(node_name, **kwargs)
        settings = declare_fixed(self, SourceSettings)
        cameras = settings.cameras
        if len(set(cameras)) != len(cameras) or not all(map(_is_topic_name, cameras)):
            raise OxygenError(
                'cameras: expected different names of letters, digits, _ and /, '
                f'got {list(cameras)}'
            )
        self._cameras = [
            (
                self.create_publisher(Image, f'{camera}/image_raw', qos_profile_sensor_data),
                [
                    _message(camera, frame)
                    for frame in render_scene(index, len(cameras), settings.height, settings.width)
                ],
            )
            for index, camera in enumerate(cameras)
        ]
        self._num_published = 0
        self._record_file = settings.record_file
        self._stamps_ns: dict[str, list[int]] = {camera: [] for camera in cameras}
        joint_names = list(settings.joints) or [
            f'joint_{index}' for index in range(settings.num_joints)
        ]
        self._joints = JointState(name=joint_names)
        self._joint_publisher = self.create_publisher(JointState, 'joint_states', 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._instruction_publisher = self.create_publisher(String, 'instruction', latched)
        self._instruction_publisher.publish(String(data=settings.instruction))
        self.create_timer(1.0 / settings.rate_hz, self._publish_images)
        self.create_timer(1.0 / settings.joint_rate_hz, self._publish_joints)

    def _publish_images(self) -> None:
        for publisher, messages in self._cameras:
            message = messages[self._num_published % len(messages)]
            now = self.get_clock().now()
            message.header.stamp = now.to_msg()
            if self._record_file:
                self._stamps_ns[message.header.frame_id].append(now.nanoseconds)
            publisher.publish(message)
        self._num_published += 1

    def destroy_node(self) -> None:
        """Write the record and end."""
        if self._record_file:
            Path(self._record_file).write_text(json.dumps(self._stamps_ns))
        super().destroy_node()

    def _publish_joints(self) -> None:
        now = self.get_clock().now()
        angle = 2.0 * math.pi * (now.nanoseconds * 1e-9 % _MOTION_PERIOD_S) / _MOTION_PERIOD_S
        speed = _MOTION_RAD * 2.0 * math.pi / _MOTION_PERIOD_S
        joints = range(len(self._joints.name))
        self._joints.header.stamp = now.to_msg()
        self._joints.position = array(
            'd', [_MOTION_RAD * math.sin(angle + index) for index in joints]
        )
        self._joints.velocity = array('d', [speed * math.cos(angle + index) for index in joints])
        self._joint_publisher.publish(self._joints)


def _is_topic_name(name: str) -> bool:
    return re.fullmatch(r'[A-Za-z_]\w*(/[A-Za-z_]\w*)*', name, re.ASCII) is not None


def _message(camera: str, frame: Any) -> Image:
    height, width = frame.shape[:2]
    message = Image(height=height, width=width, encoding='rgb8', step=3 * width)
    message.header.frame_id = camera
    # An array is taken as it is; an ndarray would be copied element by element, 700 times slower.
    message.data = array('B', frame.tobytes())
    return message


def main() -> None:
    """Run the node; the exit status is not 0 when a parameter is wrong."""
    sys.exit(run_node('camera_source', CameraSource))


if __name__ == '__main__':
    main()
