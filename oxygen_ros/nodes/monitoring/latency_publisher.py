# SPDX-License-Identifier: Apache-2.0
"""~/latency, the figures of the last second, and ~/timeline, what the engine ran when."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import Header, Int64MultiArray

import oxygen_ros.msg as msg

from ...robot.latency import LatencyFigures
from ...robot.messages import timeline_message
from ...robot.robot import Robot
from ..messages import make_message, stamp_of
from ..middleware.endpoints import make_publisher


class LatencyPublisher:
    """Made at configure; belongs to the executor's thread."""

    def __init__(self, node: Node, robot: Robot) -> None:
        self._node = node
        self._figures = LatencyFigures(robot)
        self._timeline = robot.engine.timeline
        self._clock = robot.clock
        self._num_seen = 0  # events of the timeline
        self._publisher = make_publisher(node, msg.LatencyReport, '~/latency', 10)
        # Several messages deep: of a run without gaps each one counts.
        self._timeline_publisher = make_publisher(node, Int64MultiArray, '~/timeline', 50)

    def restart(self) -> None:
        """Begin a new window, at activation."""
        self._figures.restart()

    def publish(self) -> None:
        """Publish one report, and what the engine ran since the last one."""
        now_ns = self._clock.now_ns()
        report = msg.LatencyReport(header=Header(stamp=stamp_of(now_ns + self._clock.offset_ns())))
        for name, value in self._figures.read(now_ns).items():
            setattr(report, name, value)
        self._publisher.publish(report)
        self._publish_timeline()

    def _publish_timeline(self) -> None:
        """Publish the events that are new, in ROS time, if somebody listens."""
        written = self._timeline.num_written
        num_new = written - self._num_seen if written >= self._num_seen else written
        self._num_seen = written
        if not num_new or not self._timeline_publisher.get_subscription_count():
            return
        rows = self._timeline.newest(num_new)
        rows[:, 1:3] += self._clock.offset_ns()
        self._timeline_publisher.publish(timeline_message(make_message, rows))

    def destroy(self) -> None:
        """Destroy the topics."""
        self._node.destroy_publisher(self._timeline_publisher)
        self._node.destroy_publisher(self._publisher)
