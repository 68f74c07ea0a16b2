# SPDX-License-Identifier: Apache-2.0
"""~/tick_parameters: what a tick in a process of its own was told, for the engine's audit log."""

from __future__ import annotations

import json

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from ..middleware.endpoints import make_publisher
from ..parameters import read_all

TOPIC = 'tick_parameters'
_MAX_BYTES = 1_000_000  # of the text; a robot_description is in it


def parameters_qos() -> QoSProfile:
    """Return the profile of ~/tick_parameters, reliable and latched."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ParameterPublisher:
    """Publishes a node's parameter set as a JSON object, by name, now and after each change."""

    def __init__(self, node: Node, prefix: str) -> None:
        self._node = node
        self._publisher = make_publisher(node, String, f'{prefix}/{TOPIC}', parameters_qos())
        self.publish()

    def publish(self) -> None:
        """Tell the present set."""
        self._publisher.publish(String(data=json.dumps(read_all(self._node))))

    def destroy(self) -> None:
        """Take the topic back."""
        self._node.destroy_publisher(self._publisher)


def parse_parameters(text: str) -> dict[str, object]:
    """Return what was told.

    :raises ValueError: says what was expected and what came.
    """
    if len(text) > _MAX_BYTES:
        raise ValueError(f'{TOPIC}: expected at most {_MAX_BYTES} characters, got {len(text)}')
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f'{TOPIC}: expected a JSON object, got {type(found).__name__}')
    return found
