# SPDX-License-Identifier: Apache-2.0
"""Everything that the node subscribes to: cameras, joint states, the instruction."""

from __future__ import annotations

from collections.abc import Callable
import functools
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import MessageInfo, Subscription
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

from ...ingest import CameraSink
from ...robot.settings import RobotSettings
from ...runtime.sensor_hub import SensorHub
from ..clocks import ClockBridge
from ..faults import FaultLog
from ..middleware.endpoints import make_subscription
from ..middleware.sequence_gaps import SequenceGaps
from .camera_ingest import CameraIngest
from .joint_state_input import JointStateInput

_RAW = (Image, 'image_raw')
_COMPRESSED = (CompressedImage, 'image_raw/compressed')
_TRANSPORTS: dict[str, tuple[tuple[Any, str], ...]] = {
    'raw': (_RAW,),
    'compressed': (_COMPRESSED,),
    'auto': (_RAW, _COMPRESSED),
}


class Inputs:
    """Made at configure; the callbacks run in the executor's thread and return at once.

    :param on_instruction: takes the text of a new instruction.
    :param on_time_jump: takes the name of a camera whose stamps jumped back; any thread.
    :param on_resize: takes the name of a camera whose images have another size; any thread.
    """

    def __init__(
        self,
        node: Node,
        settings: RobotSettings,
        sensors: SensorHub,
        clock: ClockBridge,
        on_instruction: Callable[[str], None],
        on_time_jump: Callable[[str], None],
        on_resize: Callable[[str], None],
        faults: FaultLog,
    ) -> None:
        sink = CameraSink(sensors.put_frame, sensors.drop_frame, on_time_jump, on_resize)
        self.ingest = CameraIngest(sensors.config.cameras, settings.ingest, clock, sink, faults)
        self.joints = JointStateInput(settings.joints, settings.ingest, clock, sensors.put_state)
        self.camera_subscriptions: dict[str, list[Subscription[Any]]] = {}
        self._node = node
        self._faults = faults
        # Of its own, for a group remembers every entity it ever had.
        self._group = MutuallyExclusiveCallbackGroup()
        # Best effort hears reliable publishers too.
        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        for camera in sensors.config.cameras:
            offer = functools.partial(self._on_image, camera)
            self.camera_subscriptions[camera] = [
                self._subscribe(
                    kind, f'{camera}/{topic}', functools.partial(offer, SequenceGaps()), newest
                )
                for kind, topic in _TRANSPORTS[settings.image_transport]
            ]
        self.joint_subscription = self._subscribe(
            JointState, 'joint_states', self.joints.offer, newest
        )
        self.instruction_subscription = self._subscribe(
            String, 'instruction', lambda message: on_instruction(message.data), latched
        )

    def _on_image(
        self, camera: str, gaps: SequenceGaps, message: Image | CompressedImage, info: MessageInfo
    ) -> None:
        before = gaps.missed
        gaps.take(info)
        self.ingest.inputs[camera].missed += gaps.missed - before
        self.ingest.offer(camera, message)

    def _subscribe(
        self, kind: type, topic: str, callback: Callable[..., None], qos: QoSProfile
    ) -> Subscription[Any]:
        return make_subscription(
            self._node, kind, topic, self._faults.guard(topic, callback), qos, self._group
        )

    def forget(self) -> None:
        """Use nothing that has come so far: time jumped."""
        self.ingest.forget()
        self.joints.stream.begin()

    def destroy(self) -> None:
        """Take all subscriptions back."""
        for subscriptions in self.camera_subscriptions.values():
            for subscription in subscriptions:
                self._node.destroy_subscription(subscription)
        self._node.destroy_subscription(self.joint_subscription)
        self._node.destroy_subscription(self.instruction_subscription)
