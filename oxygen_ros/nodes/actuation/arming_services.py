# SPDX-License-Identifier: Apache-2.0
"""The services by which the robot is armed and held, wherever the tick runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from ...control import Arming, ArmReply
from ...robot.faults import FaultLog

NOT_CONFIGURED = 'expected a configured node, got an unconfigured one'


class ArmingServices:
    """Made with the node, since a caller is owed an answer in every state; executor's thread.

    :param prefix: of the services' names: `~`, or the node in whose name they are served.
    :param arming: returns who drives, or None while the node is not configured.
    """

    def __init__(
        self, node: Node, prefix: str, arming: Callable[[], Arming | None], faults: FaultLog
    ) -> None:
        self._arming = arming
        for name, service_type, callback in (
            ('enable', SetBool, self._on_enable),
            ('hold', Trigger, self._request(Arming.hold)),
            ('stop', Trigger, self._request(Arming.stop)),
            ('takeover', Trigger, self._request(Arming.takeover)),
        ):
            node.create_service(
                service_type, f'{prefix}/{name}', faults.guard_service(name, callback)
            )

    def _on_enable(self, request: SetBool.Request, response: Any) -> Any:
        change = Arming.enable if request.data else Arming.disarm
        return self._request(change)(request, response)

    def _request(self, change: Callable[[Arming], ArmReply]) -> Callable[[Any, Any], Any]:
        def callback(request: Any, response: Any) -> Any:
            del request
            arming = self._arming()
            if arming is None:
                response.success, response.message = False, NOT_CONFIGURED
                return response
            reply = change(arming)
            response.success, response.message = reply.success, reply.message
            return response

        return callback
