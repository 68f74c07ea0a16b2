# SPDX-License-Identifier: Apache-2.0
"""The client that measures what watching costs: blocks of time with and without it, in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters

from oxygen_ros.msg import LatencyReport, Target

from ...errors import OxygenError
from .load_client import LoadClient, LoadPlan, LoadRecording
from .node_driver import run_driver

_RATES_HZ = {'latency.rate_hz': 10.0, 'diagnostics.rate_hz': 1.0}  # while it is watched
_SETTLE_S = 1.5  # after each switch


@dataclass(slots=True)
class Block:
    """What came in one block."""

    is_watched: bool
    lateness_ms: list[float]  # of each tick
    num_reports: int  # on ~/latency
    num_statuses: int  # on /diagnostics


def run_blocks(
    plan: LoadPlan,
    check: Callable[[], None],
    num_pairs: int,
    watch: Callable[[bool], None],
    done: Callable[[Block], None],
) -> tuple[LoadRecording, list[Block]]:
    """Run the client to its end; return all that was recorded, and by block.

    :param plan: its duration is that of one block.
    :param num_pairs: blocks without and with watching.
    :param watch: begins and ends what watches beside the node.
    :param done: told each block as it ends.
    """

    def run(client: BlockClient) -> tuple[LoadRecording, list[Block]]:
        return client.run_blocks(num_pairs, watch, done)

    return run_driver(lambda: BlockClient(plan, check), run)


class BlockClient(LoadClient):
    """One thread, as its base."""

    def __init__(self, plan: LoadPlan, check: Callable[[], None]) -> None:
        super().__init__(plan, check)
        self._block = Block(False, [], 0, 0)
        self._set_parameters: Any = self.create_client(SetParameters, 'oxygen/set_parameters')
        self.create_subscription(LatencyReport, 'oxygen/latency', self._on_report, 10)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_status, 10)

    def run_blocks(
        self, num_pairs: int, watch: Callable[[bool], None], done: Callable[[Block], None]
    ) -> tuple[LoadRecording, list[Block]]:
        """Bring the node up, load it through all blocks, take it down."""
        self.begin()
        self.load_for(_SETTLE_S)
        blocks = []
        for number in range(2 * num_pairs):
            self._block = Block(bool(number % 2), [], 0, 0)
            self._set_rates(self._block.is_watched)
            watch(self._block.is_watched)
            self.load_for(_SETTLE_S)
            self._block.num_reports = self._block.num_statuses = 0  # those of the switching
            self._recording_now = True
            self.load_for(self._plan.duration_s)
            self._recording_now = False
            blocks.append(self._block)
            done(self._block)
        self.take_down()
        return self._recording, blocks

    def _set_rates(self, is_watched: bool) -> None:
        request = SetParameters.Request(
            parameters=[
                Parameter(
                    name=name,
                    value=ParameterValue(
                        type=ParameterType.PARAMETER_DOUBLE, double_value=is_watched * rate_hz
                    ),
                )
                for name, rate_hz in _RATES_HZ.items()
            ]
        )
        for result in self.call(self._set_parameters, request, 'set_parameters').results:
            if not result.successful:
                raise OxygenError(f'set_parameters: expected to be followed, got: {result.reason}')

    def _on_target(self, target: Target) -> None:
        super()._on_target(target)
        if self._recording_now:
            self._block.lateness_ms.append(target.lateness_s * 1e3)

    def _on_report(self, report: LatencyReport) -> None:
        del report
        self._block.num_reports += 1

    def _on_status(self, status: DiagnosticArray) -> None:
        del status
        self._block.num_statuses += 1
