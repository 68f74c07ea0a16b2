# SPDX-License-Identifier: Apache-2.0
"""/diagnostics: one status for each part, once a second, under names that never change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.subscription import Subscription
from std_msgs.msg import Header

from ...robot.clock import RobotClock, ros_now_ns
from ...robot.status import Finding, Level, Status
from ..messages import stamp_of
from ..middleware.endpoints import make_publisher, publisher_problems

Task = Callable[[], Status]


class DiagnosticsPublisher:
    """Made at configure; belongs to the executor's thread.

    :param hardware_id: what the figures are about, such as the model.
    """

    def __init__(self, node: Node, hardware_id: str, clock: RobotClock) -> None:
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
        self._publisher.publish(
            DiagnosticArray(
                header=Header(stamp=stamp_of(ros_now_ns(self._clock))),
                status=[self._status(name, task) for name, task in self._tasks.items()],
            )
        )

    def destroy(self) -> None:
        """Destroy the topic."""
        self._node.destroy_publisher(self._publisher)

    def _status(self, name: str, task: Task) -> DiagnosticStatus:
        try:
            findings, figures = task()
        except Exception as error:  # noqa: B902, BLE001 one task's fault is a finding of its own
            findings, figures = [Finding(Level.ERROR, f'{type(error).__name__}: {error}')], []
        level = max((finding.level for finding in findings), default=Level.OK)
        return DiagnosticStatus(
            level=bytes((level,)),
            name=f'{self._node.get_fully_qualified_name().lstrip("/")}: {name}',
            message=_message(findings),
            hardware_id=self._hardware_id,
            values=[KeyValue(key=key, value=_text(value)) for key, value in figures],
        )


def with_graph(
    status: Status, node: Node, subscriptions: Iterable[Subscription[Any]], level: Level
) -> Status:
    """Add to a status why publishers cannot be heard."""
    problems = [
        Finding(level, problem)
        for subscription in subscriptions
        for problem in publisher_problems(node, subscription)
    ]
    return Status([*status.findings, *problems], status.figures)


def _message(findings: Iterable[Finding]) -> str:
    causes = [finding.cause for finding in sorted(findings, key=lambda finding: -finding.level)]
    return '; '.join(causes) or 'OK'


def _text(value: object) -> str:
    return f'{value:.3f}' if isinstance(value, float) else str(value)
