# SPDX-License-Identifier: Apache-2.0
"""Subscribes to ~/latency and /diagnostics and forwards plain numbers."""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
from numpy.typing import NDArray
from rclpy.exceptions import NameValidationException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from oxygen_ros.msg import LatencyReport

from ..errors import OxygenError
from ..figures.latency_fields import row_of, stamp_ns_of

TYPE = 'oxygen_ros/msg/LatencyReport'
_AGE_KEY = 'age (s)'

OnReport = Callable[[NDArray[np.float64], int], None]  # row, header stamp (ROS time, ns)
OnCameraAges = Callable[[dict[str, float]], None]  # camera: age of its newest image (ms)


class LatencySource:
    """Follows one node's figures; the callbacks run on the thread of the node's executor."""

    def __init__(self, node: Node, on_report: OnReport, on_camera_ages: OnCameraAges) -> None:
        self._node = node
        self._on_report = on_report
        self._on_camera_ages = on_camera_ages
        self._subscription: Subscription[Any] | None = None
        self._prefix = ''
        # Best effort hears every publisher, and over a bad link asks the robot to repeat nothing.
        self._qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._diagnostics = node.create_subscription(
            DiagnosticArray, '/diagnostics', self._take_diagnostics, self._qos
        )

    def follow(self, topic: str) -> None:
        """Listen to this topic, and no longer to the one before.

        :raises OxygenError: no topic can have that name.
        """
        self._drop()
        try:
            self._subscription = self._node.create_subscription(
                LatencyReport, topic, self._take_report, self._qos
            )
        except (NameValidationException, ValueError) as error:
            raise OxygenError(
                f'topic: expected a name such as /oxygen/latency, got {topic!r} '
                f'({" ".join(str(error).split())})'
            ) from None
        node_name = self._subscription.topic_name.rpartition('/')[0]
        self._prefix = f'{node_name.lstrip("/")}: camera '

    def topics(self) -> list[str]:
        """Return the topics of this type that are known now."""
        return [name for name, types in self._node.get_topic_names_and_types() if TYPE in types]

    def close(self) -> None:
        """End all subscriptions."""
        self._drop()
        self._node.destroy_subscription(self._diagnostics)

    def _drop(self) -> None:
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _take_report(self, report: LatencyReport) -> None:
        self._on_report(row_of(report), stamp_ns_of(report.header))

    def _take_diagnostics(self, array: DiagnosticArray) -> None:
        ages_ms = {}
        for status in array.status:
            if self._prefix and status.name.startswith(self._prefix):
                text = next((pair.value for pair in status.values if pair.key == _AGE_KEY), '')
                ages_ms[status.name[len(self._prefix) :]] = _seconds(text) * 1e3
        if ages_ms:
            self._on_camera_ages(ages_ms)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # 'none': no image so far
        return math.nan
