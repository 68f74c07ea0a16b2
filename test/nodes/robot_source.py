"""A robot for tests: cameras and joint states, published from the test's own process."""
from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data, QoSProfile
from sensor_msgs.msg import Image, JointState


class RobotSource(Node):
    """Publishes noise images and slowly moving joints."""

    def __init__(self, cameras: Sequence[str], joints: Sequence[str], *, camera_hz: float = 15.0,
                 joint_hz: float = 50.0, **kwargs: object) -> None:
        super().__init__('robot_source', **kwargs)  # type: ignore[arg-type]
        self._joints = list(joints)
        self._rng = np.random.default_rng(0)
        self._cameras = {
            camera: self.create_publisher(Image, f'{camera}/image_raw', qos_profile_sensor_data)
            for camera in cameras}
        self._states = self.create_publisher(JointState, 'joint_states', QoSProfile(depth=1))
        self._num_states = 0
        self.paused: set[str] = set()
        self.create_timer(1.0 / camera_hz, self.publish_images)
        self.create_timer(1.0 / joint_hz, self.publish_state)

    def publish_images(self) -> None:
        """Publish one image of each camera that is not paused."""
        stamp = self.get_clock().now().to_msg()
        for camera, publisher in self._cameras.items():
            if camera not in self.paused:
                pixels = self._rng.integers(0, 256, 48 * 64 * 3, dtype=np.uint8)
                message = Image(height=48, width=64, encoding='rgb8', step=64 * 3)
                message.header.stamp = stamp
                message.data = array('B', pixels.tobytes())
                publisher.publish(message)

    def publish_state(self) -> None:
        """Publish joint positions."""
        if 'joint_states' in self.paused:
            return
        self._num_states += 1
        message = JointState(name=self._joints)
        message.header.stamp = self.get_clock().now().to_msg()
        phase = 0.01 * self._num_states
        message.position = (0.2 * np.sin(phase + np.arange(len(self._joints)))).tolist()
        self._states.publish(message)
