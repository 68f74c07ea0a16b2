# SPDX-License-Identifier: Apache-2.0
"""A lifecycle node that leaves nothing behind in the middleware.

Upstream: no issue known for the state machine; that actions are left to the garbage collector is
said in ros2/rclpy pull request 497. Seen with rclpy 9.1.2. It may go when `destroy_node` of
`LifecycleNode` destroys the state machine (`test_oxygen_node_transitions.py` looks whether nodes
are gone).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode


class DestroyableNode(LifecycleNode):
    """A lifecycle node that is gone once it is destroyed, half made or whole.

    rclpy leaves the services of the state machine and actions, and with them the node, to the
    garbage collector: until it comes by, clients find `~/change_state` of a node that will not
    answer.

    :param kwargs: as of `LifecycleNode`: namespace, context, parameter_overrides, cli_args ...
    """

    def __init__(self, node_name: str, **kwargs: Any) -> None:
        self._is_destroyed = False
        self._ends: list[Callable[[], None]] = []
        super().__init__(node_name, **kwargs)

    def end_with_node(self, end: Callable[[], None]) -> None:
        """Have something called when the node is destroyed, before its entities go."""
        self._ends.append(end)

    def destroy_node(self) -> None:
        """Destroy the node and its state machine; once more changes nothing."""
        if self._is_destroyed:
            return
        self._is_destroyed = True
        for end in self._ends:
            end()
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()
