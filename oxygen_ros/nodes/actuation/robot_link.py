# SPDX-License-Identifier: Apache-2.0
"""What the tick learns of the robot besides its joints: limits it describes, its controllers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from ...control import ControlTick, JointLimits, limits_of_description, TickConfig
from ..faults import FaultLog
from ..middleware.endpoints import make_subscription
from .controller_watch import ControllerWatch
from .target_publisher import TargetPublisher


class RobotLink:
    """Made at configure beside the tick; executor's thread.

    :param limits: those of the parameters, which a robot_description can only tighten.
    """

    def __init__(
        self,
        node: Node,
        joints: Sequence[str],
        tick: ControlTick,
        limits: JointLimits,
        controller_manager: str,
        targets: TargetPublisher,
        faults: FaultLog,
    ) -> None:
        self._node = node
        self._joints = joints
        self._tick = tick
        self._given = (tick.config, limits)
        self._described: JointLimits | None = None
        self._problem = ''
        self._subscription = None
        if tick.config.awaits_limits:
            self._subscription = make_subscription(
                node,
                String,
                'robot_description',
                faults.guard('robot_description', self._on_description),
                QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL),
                MutuallyExclusiveCallbackGroup(),
            )
        topics = [output.publisher.topic_name for output in targets.outputs]
        self._watch = (
            ControllerWatch(node, controller_manager, topics) if controller_manager else None
        )

    def _on_description(self, message: String) -> None:
        try:
            described = limits_of_description(message.data, self._joints)
        except ValueError as error:
            # The limits from before stay in force; without any the tick holds.
            self._problem = str(error)
            self._node.get_logger().error(self._problem)
            return
        self._described = described
        self.reconfigure(*self._given)
        if not self._problem:
            self._node.get_logger().info('limits of robot_description are in force')

    def reconfigure(self, config: TickConfig, limits: JointLimits) -> None:
        """Use other settings, with what the robot has described of itself.

        Where the two contradict each other, those from before stay in force.
        """
        self._given = (config, limits)
        try:
            if self._described is not None:
                config = replace(config, awaits_limits=False)
                limits = limits.tightened(self._described)
            self._tick.reconfigure(config, limits)
            self._problem = ''
        except ValueError as error:
            self._problem = f'limits.{error}'
            self._node.get_logger().error(self._problem)

    def problems(self) -> list[str]:
        """Return what is wrong with what the robot says of itself."""
        found = [self._problem] if self._problem else []
        return found if self._watch is None else [*found, *self._watch.problems()]

    def destroy(self) -> None:
        """Take all entities back."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
        if self._watch is not None:
            self._watch.destroy()
