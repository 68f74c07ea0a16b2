# SPDX-License-Identifier: Apache-2.0
"""Whether the controllers of the command topics are active, as their manager says."""

from __future__ import annotations

from collections.abc import Sequence
import importlib
import time
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from .target_publisher import TargetPublisher

_PERIOD_S = 2.0
_TIMEOUT_S = 5.0


class ControllerWatch:
    """Asks controller_manager now and then, and never waits for it; executor's thread.

    :param manager: name of the controller_manager.
    :param topics: command topics; a controller has the name before a topic's last part.
    :param service_type: of list_controllers; None: that of controller_manager_msgs, where it is
        installed.
    """

    def __init__(
        self, node: Node, manager: str, topics: Sequence[str], service_type: Any = None
    ) -> None:
        self._node = node
        self._service = f'{manager}/list_controllers'
        self._controllers = [topic.split('/')[-2] for topic in topics]
        self._states: dict[str, str] | None = None  # None: no answer so far
        self._pending: Any = None
        self._asked_s = -_PERIOD_S
        service_type = service_type or _list_controllers()
        self._client: Any = (
            None
            if service_type is None
            else node.create_client(
                service_type, self._service, callback_group=MutuallyExclusiveCallbackGroup()
            )
        )

    @classmethod
    def of(cls, node: Node, manager: str, targets: TargetPublisher) -> ControllerWatch | None:
        """Return a watch of the controllers of a node's targets, if it is to ask for them."""
        topics = [output.publisher.topic_name for output in targets.outputs]
        return cls(node, manager, topics) if manager else None

    def problems(self) -> list[str]:
        """Return what is wrong as of the last answer; ask anew when it is time."""
        if self._client is None:
            return [
                'actuation.controller_manager: expected the package controller_manager_msgs, '
                'got none'
            ]
        self._ask()
        if self._states is None:
            return [f'{self._service}: no answer']
        found = []
        for name in self._controllers:
            state = self._states.get(name, 'none of that name')
            if state != 'active':
                found.append(f'controller {name}: expected active, got {state}')
        return found

    def _ask(self) -> None:
        now_s = time.monotonic()
        if self._pending is not None and now_s - self._asked_s > _TIMEOUT_S:
            self._client.remove_pending_request(self._pending)
            self._pending = self._states = None
        if self._pending is not None or now_s - self._asked_s < _PERIOD_S:
            return
        if not self._client.service_is_ready():
            self._states = None
            return
        self._asked_s = now_s
        self._pending = self._client.call_async(self._client.srv_type.Request())
        self._pending.add_done_callback(self._on_answer)

    def _on_answer(self, future: Any) -> None:
        if future is not self._pending:
            return  # given up meanwhile
        self._pending = None
        self._states = {
            controller.name: controller.state for controller in future.result().controller
        }

    def destroy(self) -> None:
        """Take the client back."""
        if self._client is not None:
            self._node.destroy_client(self._client)


def _list_controllers() -> Any:
    try:
        return importlib.import_module('controller_manager_msgs.srv').ListControllers
    except ImportError:
        return None
