# SPDX-License-Identifier: Apache-2.0
"""Everything that the node subscribes to for its robot: cameras, joints, words, geometry."""

from __future__ import annotations

from collections.abc import Callable
import functools
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import MessageInfo, Subscription
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, JointState
from std_msgs.msg import String

from ...robot.faults import FaultLog
from ...robot.settings import RobotSettings
from ..messages import ns_of
from ..middleware.endpoints import make_subscription
from ..middleware.sequence_gaps import SequenceGaps
from ..robot_access import RobotAccess

_RAW = (Image, 'image_raw')
_COMPRESSED = (CompressedImage, 'image_raw/compressed')
_TRANSPORTS: dict[str, tuple[tuple[Any, str], ...]] = {
    'raw': (_RAW,),
    'compressed': (_COMPRESSED,),
    'auto': (_RAW, _COMPRESSED),
}
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Inputs:
    """Made at configure; the callbacks run in the executor's thread and return at once.

    :param newest: the profile of what is measured; best effort hears reliable publishers too.
    """

    def __init__(
        self,
        node: Node,
        settings: RobotSettings,
        access: RobotAccess,
        faults: FaultLog,
        newest: QoSProfile = NEWEST,
    ) -> None:
        self.camera_subscriptions: dict[str, list[Subscription[Any]]] = {}
        self._node = node
        self._access = access
        self._faults = faults
        self._all: list[Subscription[Any]] = []
        # Of its own, for a group remembers every entity it ever had.
        self._group = MutuallyExclusiveCallbackGroup()
        for camera in settings.sensors.cameras:
            self.camera_subscriptions[camera] = [
                self._subscribe(
                    kind,
                    f'{camera}/{topic}',
                    functools.partial(self._on_image, camera, SequenceGaps()),
                    newest,
                )
                for kind, topic in _TRANSPORTS[settings.image_transport]
            ]
        self.joint_subscription = self._subscribe(
            JointState, 'joint_states', self._on_joints, newest
        )
        self.instruction_subscription = self._subscribe(
            String, 'instruction', self._on_instruction, _LATCHED
        )
        positions = settings.memory.positions
        if positions.frame_id:
            for camera in settings.sensors.cameras:
                self._subscribe(
                    CameraInfo,
                    f'{camera}/camera_info',
                    functools.partial(self._on_camera_info, camera),
                    newest,
                )
            for camera in positions.depth_cameras:
                self._subscribe(
                    Image,
                    f'{camera}/depth/image_raw',
                    functools.partial(self._on_depth, camera),
                    newest,
                )
        if settings.tick.awaits_limits:
            self._subscribe(String, 'robot_description', self._on_description, _LATCHED)

    def _subscribe(
        self, kind: type, topic: str, callback: Callable[..., None], qos: QoSProfile
    ) -> Subscription[Any]:
        subscription = make_subscription(
            self._node, kind, topic, self._faults.guard(topic, callback), qos, self._group
        )
        self._all.append(subscription)
        return subscription

    def _on_image(
        self,
        camera: str,
        gaps: SequenceGaps,
        message: Image | CompressedImage,
        info: MessageInfo,
    ) -> None:
        before = gaps.missed
        gaps.take(info)
        missed, stamp_ns = gaps.missed - before, ns_of(message.header.stamp)
        self._access.submit(
            lambda robot: robot.take_image(camera, message, stamp_ns, missed=missed)
        )

    def _on_joints(self, message: JointState) -> None:
        stamp_ns = ns_of(message.header.stamp)
        self._access.submit(
            lambda robot: robot.take_joints(message.name, message.position, stamp_ns)
        )

    def _on_instruction(self, message: String) -> None:
        self._access.submit(lambda robot: robot.take_instruction_of_topic(message.data))

    def _on_camera_info(self, camera: str, message: CameraInfo) -> None:
        self._access.submit(lambda robot: robot.take_camera_info(camera, message))

    def _on_depth(self, camera: str, message: Image) -> None:
        stamp_ns = ns_of(message.header.stamp)
        self._access.submit(lambda robot: robot.take_depth(camera, message, stamp_ns))

    def _on_description(self, message: String) -> None:
        self._access.submit(lambda robot: robot.actuation.describe(message.data))

    def destroy(self) -> None:
        """Destroy all subscriptions."""
        for subscription in self._all:
            self._node.destroy_subscription(subscription)
