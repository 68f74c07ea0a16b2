# SPDX-License-Identifier: Apache-2.0
"""An active, armed node with fresh targets beside its robot, all in the test's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import math
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rig import deadlines_ns, overrides, Rig
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import Target
from oxygen_ros.nodes.oxygen_node import OxygenNode


class ArmedRig(Rig):
    """A rig with a node of its own, and what the node said so far.

    :param parameters: of the node; two underscores stand for a dot.
    """

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self.node = OxygenNode(context=self.context, parameter_overrides=overrides(**parameters))
        self.executor.add_node(self.node)
        self.targets: list[Target] = self.received['oxygen/target']
        self.sent: list[JointTrajectory] = self.received['oxygen/joint_trajectory']
        self.listen(Target, 'oxygen/target')
        self.listen(JointTrajectory, 'oxygen/joint_trajectory')
        self.listen(DiagnosticArray, '/diagnostics', 10)
        try:
            self.node.trigger_configure()
            self.call(SetBool, 'oxygen/enable', SetBool.Request(data=True))
            self.node.trigger_activate()
            self.wait_for_fresh()
        except BaseException:
            self.close()  # or its threads keep the process
            raise

    def wait_for_fresh(self) -> None:
        """Spin until targets are no longer held."""
        self.wait_for(lambda: bool(self.targets) and not self.targets[-1].held, 'a fresh target')

    def wait_for_fresh_after(self, number: int) -> None:
        """Spin until one of the targets from this one on is not held."""
        self.wait_for(
            lambda: any(not target.held for target in self.targets[number:]), 'a fresh target'
        )

    def wait_until_due(self, time_ns: int) -> None:
        """Spin until there is a target that was due after a time (ROS time)."""
        self.wait_for(lambda: bool(deadlines_ns(self.targets[-100:])[-1] > time_ns), 'a target')

    def targets_due(self, after_ns: int, before_ns: float = math.inf) -> list[Target]:
        """Return the targets that were due in between (ROS time); of one activation."""
        due_ns = deadlines_ns(self.targets)
        inside = (due_ns > after_ns) & (due_ns < before_ns)
        return [target for target, is_inside in zip(self.targets, inside) if is_inside]

    def wait_for_ticks(self, number: int) -> None:
        """Spin until so many periods have passed since the newest target."""
        first = self.targets[-1].tick
        self.wait_for(lambda: self.targets[-1].tick >= first + number, f'{number} periods')

    def wait_for_hold(self, *reasons: str) -> None:
        """Spin until the node holds for one of these reasons."""
        self.wait_for(
            lambda: self.targets[-1].held and self.targets[-1].hold_reason in reasons,
            f'a hold for {reasons}',
        )

    def wait_for_status(self, part: str, condition: Callable[[Any], bool]) -> Any:
        """Spin until the newest status of a part meets a condition; return it."""
        arrays = self.received['/diagnostics']

        def newest() -> Any:
            return next(
                (
                    status
                    for array in arrays[-1:]
                    for status in array.status
                    if status.name == f'oxygen: {part}'
                ),
                None,
            )

        def seen() -> bool:
            status = newest()
            return status is not None and condition(status)

        try:
            self.wait_for(seen, f'a status of {part}')
        except AssertionError:
            print(newest())
            raise
        return newest()

    def close(self) -> None:
        """End node and rig."""
        self.node.trigger_shutdown()
        self.executor.remove_node(self.node)
        self.node.destroy_node()
        super().close()


@contextmanager
def armed_rig(**parameters: Any) -> Iterator[ArmedRig]:
    """Make one for a test, and end it."""
    rig = ArmedRig(**parameters)
    try:
        yield rig
    finally:
        rig.close()
