# SPDX-License-Identifier: Apache-2.0
"""/diagnostics: one status for each part, once a second, under names that never change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from std_msgs.msg import Header

from ..clocks import ClockBridge, stamp_of
from ..middleware.endpoints import make_publisher

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR

Finding = tuple[bytes, str]
Figures = list[tuple[str, object]]
Task = Callable[[], tuple[list[Finding], Figures]]
"""Returns what is wrong (level and cause each) and the figures (key with its unit, value)."""


class DiagnosticsPublisher:
    """Made at configure; belongs to the executor's thread.

    :param hardware_id: what the figures are about, such as the model.
    """

    def __init__(self, node: Node, hardware_id: str, clock: ClockBridge) -> None:
        self._node = node
        self._hardware_id = hardware_id
        self._clock = clock
        self._tasks: dict[str, Task] = {}
        # Absolute on purpose: every tool listens there.
        self._publisher = make_publisher(node, DiagnosticArray, '/diagnostics', 10)

    def add(self, name: str, task: Task) -> None:
        """Add a status; its full name is that of the node, a colon and this name."""
        self._tasks[name] = task

    def publish(self) -> None:
        """Publish all statuses."""
        stamp = stamp_of(time.monotonic_ns() + self._clock.offset_ns())
        self._publisher.publish(
            DiagnosticArray(
                header=Header(stamp=stamp),
                status=[self._status(name, task) for name, task in self._tasks.items()],
            )
        )

    def destroy(self) -> None:
        """Take the topic back."""
        self._node.destroy_publisher(self._publisher)

    def _status(self, name: str, task: Task) -> DiagnosticStatus:
        try:
            findings, figures = task()
        except Exception as error:  # noqa: B902, BLE001 one task's fault is a finding of its own
            findings, figures = [(ERROR, f'{type(error).__name__}: {error}')], []
        return DiagnosticStatus(
            level=max((level for level, _ in findings), default=OK),
            name=f'{self._node.get_fully_qualified_name().lstrip("/")}: {name}',
            message=_message(findings),
            hardware_id=self._hardware_id,
            values=[KeyValue(key=key, value=_text(value)) for key, value in figures],
        )


def _message(findings: Iterable[Finding]) -> str:
    causes = [cause for _, cause in sorted(findings, key=lambda finding: finding[0], reverse=True)]
    return '; '.join(causes) or 'OK'


def _text(value: object) -> str:
    return f'{value:.3f}' if isinstance(value, float) else str(value)
