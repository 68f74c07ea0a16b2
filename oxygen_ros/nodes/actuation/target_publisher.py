# SPDX-License-Identifier: Apache-2.0
"""The tick's outlet: the target to the actuators first, then ~/target, then the statistics."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
import time
from typing import TypeAlias

from builtin_interfaces.msg import Duration
import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import oxygen_ros.msg as msg

from ...control import ActuationMode, Decision, TickConfig, TickStatistics
from ...robot.actuator_groups import ActuatorGroup
from ..clocks import ClockBridge, NS_PER_S, stamp_of
from ..faults import FaultLog
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
    """Publishes each decision of the tick.

    `publish` is called by the tick's thread, and once more by another after that thread has ended;
    no other thread writes to the messages. Publishing needs no executor.

    :param prefix: of the topics' names: `~`, or the node in whose name they are published.
    """

    def __init__(
        self,
        node: Node,
        joints: Sequence[str],
        groups: Sequence[ActuatorGroup],
        config: TickConfig,
        clock: ClockBridge,
        faults: FaultLog,
        prefix: str = '~',
    ) -> None:
        self.statistics = TickStatistics(config.max_observation_age_ns)
        self.newest: Decision | None = None
        self._node = node
        self._clock = clock
        self._faults = faults
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

    def publish(self, decision: Decision, lateness_ns: int) -> None:
        """Send a target if armed, show it, and count it.

        :param lateness_ns: from the deadline to the decision; measured again after publication.
        """
        try:
            self._publish(decision)
        except Exception as error:  # noqa: B902, BLE001 the next tick comes all the same
            self._faults.note('target', error)
        self.newest = decision

    def _publish(self, decision: Decision) -> None:
        target = decision.target
        if decision.armed:
            for output in self.outputs:
                output.send(target.values)
        lateness_ns = time.monotonic_ns() - target.deadline_ns
        age_ns = target.observation_age_ns
        message = self._target
        message.header.stamp = stamp_of(target.deadline_ns + self._clock.offset_ns())
        message.tick = target.tick
        self._positions[:] = target.values
        message.armed = decision.armed and bool(self.outputs)
        message.held = target.held
        message.hold_reason = target.hold_reason
        message.lateness_s = lateness_ns * 1e-9
        message.observation_age_s = -1.0 if age_ns is None else age_ns * 1e-9
        message.chunk_ids = target.chunk_ids
        message.observation_ids = target.observation_ids
        message.weights = target.weights
        self._publisher.publish(message)
        self.statistics.record(
            target.tick,
            lateness_ns,
            hold_reason=target.hold_reason,
            armed=decision.armed,
            observation_age_ns=age_ns,
        )

    def destroy(self) -> None:
        """Take the topics back."""
        for output in self.outputs:
            self._node.destroy_publisher(output.publisher)
        self._node.destroy_publisher(self._publisher)
