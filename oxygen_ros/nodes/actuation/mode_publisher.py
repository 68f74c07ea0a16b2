# SPDX-License-Identifier: Apache-2.0
"""~/mode and ~/tick_parameters: who drives and by which parameters, told by who ticks."""

from __future__ import annotations

import json

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

import oxygen_ros.msg as msg

from ...control import ArmState
from ..messages import stamp_of
from ..middleware.endpoints import make_publisher
from ..parameters import read_all

PARAMETERS_TOPIC = 'tick_parameters'
_MAX_BYTES = 1_000_000  # of the parameters' text; a robot_description is in it
# A change does not wait for the others, and none of a burst of them is lost.
_MODE_DEPTH = 16


def mode_qos() -> QoSProfile:
    """Return the profile of ~/mode, reliable and latched."""
    return QoSProfile(depth=_MODE_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def parameters_qos() -> QoSProfile:
    """Return the profile of ~/tick_parameters, reliable and latched."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ModePublisher:
    """Publishes who drives; changes come from the thread of the request.

    :param prefix: of the topic's name: `~`, or the node in whose name it is published.
    """

    def __init__(self, node: Node, prefix: str) -> None:
        self._node = node
        self._publisher = make_publisher(node, msg.Mode, f'{prefix}/mode', mode_qos())

    def publish(self, state: ArmState, stamp_ns: int, request: str) -> None:
        """Publish a state, since when (ROS time), and the request behind it."""
        self._publisher.publish(
            msg.Mode(stamp=stamp_of(stamp_ns), mode=state.value, reason=request)
        )

    def destroy(self) -> None:
        """Destroy the topic."""
        self._node.destroy_publisher(self._publisher)


class ParameterPublisher:
    """Publishes a node's parameter set as a JSON object, by name, now and after each change."""

    def __init__(self, node: Node, prefix: str) -> None:
        self._node = node
        self._publisher = make_publisher(
            node, String, f'{prefix}/{PARAMETERS_TOPIC}', parameters_qos()
        )
        self.publish()

    def publish(self) -> None:
        """Publish the present set."""
        self._publisher.publish(String(data=json.dumps(read_all(self._node))))

    def destroy(self) -> None:
        """Destroy the topic."""
        self._node.destroy_publisher(self._publisher)


def parse_parameters(text: str) -> dict[str, object]:
    """Return what was published.

    :raises ValueError: says what was expected and what came.
    """
    if len(text) > _MAX_BYTES:
        raise ValueError(
            f'{PARAMETERS_TOPIC}: expected at most {_MAX_BYTES} characters, got {len(text)}'
        )
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f'{PARAMETERS_TOPIC}: expected a JSON object, got {type(found).__name__}')
    return found
