# SPDX-License-Identifier: Apache-2.0
"""The services that answer at once: instruction, memory report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

import oxygen_ros.srv as srv

from ...runtime.runtime import Runtime
from ..actuation.arming_services import NOT_CONFIGURED
from ..conversions import fill_memory_report
from ..faults import FaultLog


class Services:
    """Made with the node, since a caller is owed an answer in every state; executor's thread.

    :param runtime: returns the runtime, or None while the node is not configured.
    :param set_instruction: returns why the instruction is refused, or nothing.
    """

    def __init__(
        self,
        node: Node,
        runtime: Callable[[], Runtime | None],
        set_instruction: Callable[[str], str],
        faults: FaultLog,
    ) -> None:
        self._runtime = runtime
        self._set_instruction = set_instruction
        for name, service_type, callback in (
            ('set_instruction', srv.SetInstruction, self._on_set_instruction),
            ('get_memory_report', srv.GetMemoryReport, self._on_get_memory_report),
        ):
            node.create_service(service_type, f'~/{name}', faults.guard_service(name, callback))

    def _on_set_instruction(self, request: srv.SetInstruction.Request, response: Any) -> Any:
        response.message = self._set_instruction(request.instruction)
        response.success = not response.message
        return response

    def _on_get_memory_report(self, request: Any, response: Any) -> Any:
        del request
        runtime = self._runtime()
        if runtime is None:
            response.message = NOT_CONFIGURED
            return response
        engine = runtime.engine
        fill_memory_report(runtime.memory_report(), response)
        peak = runtime.engine.peak
        if peak is not None:
            response.bytes_peak_shared = peak.bytes_referenced
            response.bytes_peak_isolated = peak.bytes_isolated
        response.preemptions = engine.counters.preemptions
        response.images_encoded = engine.counters.images_encoded
        response.images_superseded = engine.runner.ledger.num_superseded
        response.images_reused = engine.counters.images_reused
        response.success = True
        return response
