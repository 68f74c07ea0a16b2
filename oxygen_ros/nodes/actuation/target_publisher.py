# SPDX-License-Identifier: Apache-2.0
"""The tick's outlet: the target to the actuators first, then ~/target, then the statistics."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TypeAlias

from builtin_interfaces.msg import Duration
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import oxygen_ros.msg as msg

from ...control import ActuationMode, Decision, TickConfig
from ...robot.actuator_groups import ActuatorGroup
from ...robot.messages import NS_PER_S, target_fields
from ..messages import stamp_of
from ..middleware.command_bytes import CommandBytes
from ..middleware.endpoints import make_publisher


def _in_place(values: array[float]) -> np.ndarray:
    """Return a view of a message's own array: a tick writes into it and makes no new one."""
    return np.frombuffer(values, dtype=np.float64)


def _under(prefix: str, topic: str) -> str:
    """Return a topic whose private name is meant to be that of another node."""
    return f'{prefix}{topic[1:]}' if topic.startswith('~') else topic


class TrajectoryOutput:
    """A command topic of joint trajectories with a single point.

    The stamp is 0 ("now") and the point lies one period ahead: controllers drop a point at time 0
    or in the past.
    """

    def __init__(self, node: Node, topic: str, group: ActuatorGroup, config: TickConfig) -> None:
        seconds, nanoseconds = divmod(config.period_ns, NS_PER_S)
        point = JointTrajectoryPoint(time_from_start=Duration(sec=seconds, nanosec=nanoseconds))
        field = 'velocities' if config.mode is ActuationMode.VELOCITY else 'positions'
        setattr(point, field, [0.0] * len(group.joints))
        self._command = CommandBytes(
            JointTrajectory(joint_names=list(group.joints), points=[point]), getattr(point, field)
        )
        self._indices = np.array(group.indices)
        # Controllers subscribe with the system's default profile, which is reliable.
        self.publisher = make_publisher(node, JointTrajectory, topic, QoSProfile(depth=1))

    def send(self, values: np.ndarray) -> None:
        """Publish the group's part of a target."""
        self._command.write(values[self._indices])
        self.publisher.publish(self._command.read())


class CommandsOutput:
    """A command topic of plain numbers, as forward command controllers take them."""

    def __init__(self, node: Node, topic: str, group: ActuatorGroup, config: TickConfig) -> None:
        del config
        message = Float64MultiArray(data=[0.0] * len(group.joints))
        self._command = CommandBytes(message, message.data)
        self._indices = np.array(group.indices)
        self.publisher = make_publisher(node, Float64MultiArray, topic, QoSProfile(depth=1))

    def send(self, values: np.ndarray) -> None:
        """Publish the group's part of a target."""
        self._command.write(values[self._indices])
        self.publisher.publish(self._command.read())


Output: TypeAlias = TrajectoryOutput | CommandsOutput
_OUTPUTS: dict[str, type[Output]] = {'trajectory': TrajectoryOutput, 'commands': CommandsOutput}


class TargetPublisher:
    """Sends targets to the actuators and shows them on ~/target.

    Called by the tick's thread, and once more by another after that thread has ended; no other
    thread writes to the messages. Publishing needs no executor.

    :param prefix: of the topics' names: `~`, or the node in whose name they are published.
    """

    def __init__(
        self,
        node: Node,
        joints: Sequence[str],
        groups: Sequence[ActuatorGroup],
        config: TickConfig,
        prefix: str = '~',
    ) -> None:
        self._node = node
        # None in a dry run: what has no topic cannot reach an actuator.
        self.outputs: list[Output] = (
            []
            if config.dry_run
            else [
                _OUTPUTS[group.interface](node, _under(prefix, group.topic), group, config)
                for group in groups
            ]
        )
        self._target = msg.Target(joint_names=list(joints), positions=[0.0] * len(joints))
        self._positions = _in_place(self._target.positions)
        # Two seconds: a recorder can be deaf for one while other programs join.
        self._publisher = make_publisher(
            node, msg.Target, f'{prefix}/target', QoSProfile(depth=100)
        )

    def command(self, values: NDArray[np.float64]) -> None:
        """Send a target to the actuators."""
        for output in self.outputs:
            output.send(values)

    def target(self, decision: Decision, lateness_ns: int, stamp_ns: int) -> None:
        """Show a target, sent or not; the stamp is its deadline in ROS time."""
        target, message = decision.target, self._target
        message.header.stamp = stamp_of(stamp_ns)
        self._positions[:] = target.values
        is_sent = decision.armed and bool(self.outputs)
        for name, value in target_fields(decision, is_sent, lateness_ns).items():
            setattr(message, name, value)
        self._publisher.publish(message)

    def destroy(self) -> None:
        """Destroy the topics."""
        for output in self.outputs:
            self._node.destroy_publisher(output.publisher)
        self._node.destroy_publisher(self._publisher)
