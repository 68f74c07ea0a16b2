# SPDX-License-Identifier: Apache-2.0
"""A robot for tests: cameras and joint states, published from the test's own process."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data, QoSProfile
from sensor_msgs.msg import Image, JointState


class RobotSource(Node):
    """Publishes noise images and slowly moving joints, at times of the steady clock.

    `paused` topics give nothing, cameras that are `frozen` the same pixels with fresh stamps,
    those that lag stamps of before.
    """

    def __init__(
        self,
        cameras: Sequence[str],
        joints: Sequence[str],
        *,
        camera_hz: float = 15.0,
        joint_hz: float = 50.0,
        **kwargs: object,
    ) -> None:
        super().__init__('robot_source', **kwargs)  # type: ignore[arg-type]
        self._joints = list(joints)
        self._rng = np.random.default_rng(0)
        self._cameras = {
            camera: self.create_publisher(Image, f'{camera}/image_raw', qos_profile_sensor_data)
            for camera in cameras
        }
        self._states = self.create_publisher(JointState, 'joint_states', QoSProfile(depth=1))
        self._num_states = 0
        self.paused: set[str] = set()
        self.frozen: set[str] = set()
        self.lag_ns: dict[str, int] = {}  # by camera
        self.size = (64, 48)  # width and height of the images (px)
        self.newest_ns: dict[str, int] = {}  # stamp of the newest message, by camera or topic
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # one of ROS may stand still
        self.create_timer(1.0 / camera_hz, self.publish_images, clock=steady)
        self.create_timer(1.0 / joint_hz, self.publish_state, clock=steady)

    def publish_images(self) -> None:
        """Publish one image of each camera that is not paused."""
        now = self.get_clock().now()
        width, height = self.size
        for camera, publisher in self._cameras.items():
            if camera not in self.paused:
                pixels = self._rng.integers(0, 256, height * width * 3, dtype=np.uint8)
                if camera in self.frozen:
                    pixels[:] = 99
                message = Image(height=height, width=width, encoding='rgb8', step=width * 3)
                lag = Duration(nanoseconds=self.lag_ns.get(camera, 0))
                message.header.stamp = (now - lag).to_msg()
                self.newest_ns[camera] = now.nanoseconds
                message.data = array('B', pixels.tobytes())
                publisher.publish(message)

    def publish_state(self) -> None:
        """Publish joint positions."""
        if 'joint_states' in self.paused:
            return
        self._num_states += 1
        message = JointState(name=self._joints)
        now = self.get_clock().now()
        message.header.stamp = now.to_msg()
        self.newest_ns['joint_states'] = now.nanoseconds
        phase = 0.01 * self._num_states
        message.position = (0.2 * np.sin(phase + np.arange(len(self._joints)))).tolist()
        self._states.publish(message)
