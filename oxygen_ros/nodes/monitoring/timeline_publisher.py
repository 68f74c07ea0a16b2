# SPDX-License-Identifier: Apache-2.0
"""~/timeline: what the engine ran when, for recordings; costs nothing while nobody listens."""

from __future__ import annotations

from array import array

from rclpy.node import Node
from std_msgs.msg import Int64MultiArray, MultiArrayDimension, MultiArrayLayout

from ...engine.scheduling.timeline import Timeline
from ..clocks import ClockBridge
from ..middleware.endpoints import make_publisher

_COLUMNS = 'kind,start,end,units,detail'
_NUM_COLUMNS = 5


class TimelinePublisher:
    """Publishes the entries that are new: rows of kind, start, end (ROS time, ns), units, detail.

    Made at configure; belongs to the executor's thread.
    """

    def __init__(self, node: Node, timeline: Timeline, clock: ClockBridge) -> None:
        self._node = node
        self._timeline = timeline
        self._clock = clock
        self._num_seen = 0
        # Several messages deep: of a run without gaps each one counts.
        self._publisher = make_publisher(node, Int64MultiArray, '~/timeline', 50)

    def publish(self) -> None:
        """Publish what came since the last call."""
        written = self._timeline.num_written
        num_new = written - self._num_seen if written >= self._num_seen else written
        self._num_seen = written
        if not num_new or not self._publisher.get_subscription_count():
            return
        rows = self._timeline.newest(num_new)
        rows[:, 1:3] += self._clock.offset_ns()
        dimensions = [
            MultiArrayDimension(label='event', size=len(rows), stride=rows.size),
            MultiArrayDimension(label=_COLUMNS, size=_NUM_COLUMNS, stride=_NUM_COLUMNS),
        ]
        self._publisher.publish(
            Int64MultiArray(
                layout=MultiArrayLayout(dim=dimensions), data=array('q', rows.tobytes())
            )
        )

    def destroy(self) -> None:
        """Take the topic back."""
        self._node.destroy_publisher(self._publisher)
