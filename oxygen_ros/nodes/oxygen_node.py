# SPDX-License-Identifier: Apache-2.0
"""The node: one VLA model that moves, talks and remembers, as a managed ROS 2 node."""

from __future__ import annotations

from collections.abc import Sequence
import sys
import time
from typing import Any

from ..robot.robot import Robot
from ..robot.settings import make_settings, Publish, RobotSettings, SETTINGS
from .data_plane import DataPlane
from .managed_node import ManagedNode
from .middleware.wake_up import WakeUp
from .process import run_node
from .requests.dialogue_server import DialogueServer
from .requests.services import Services


class OxygenNode(ManagedNode[RobotSettings, DataPlane]):
    """The lifecycle node of the engine.

    Action and services exist as long as the node and answer in every state; topics and timers
    exist while it is configured.

    :param kwargs: as of `LifecycleNode`: namespace, context, parameter_overrides, cli_args ...
    :raises SettingError: names the parameter, what was expected and what came.
    """

    def __init__(self, node_name: str = 'oxygen', **kwargs: Any) -> None:
        super().__init__(node_name, SETTINGS, make_settings, **kwargs)
        self._dialogue = DialogueServer(
            self, self._access, self._settings.dialogue.result_timeout_s, self._faults
        )
        self.end_with_node(self._dialogue.destroy)
        # Not `_services`: rclpy keeps its own under that name.
        self._answers = Services(self, self._access, self._faults)
        if self._settings.publish is not Publish.ELSEWHERE:
            self._serve_arming('~')
        # Lives as long as the node: the engine's thread may trigger it until its very end.
        self._wake = WakeUp(self, self._faults.guard('outbox', self._drain))

    @property
    def robot(self) -> Robot | None:
        """The robot while configured."""
        return None if self._plane is None else self._plane.robot

    def _access(self) -> DataPlane | None:
        return self._plane

    def _make_plane(self) -> DataPlane:
        """Load the model, allocate, warm up, create topics and timers."""
        start_s = time.monotonic()
        for name, value in self._settings.baselines().items():
            self.get_logger().warning(
                f'{name}: {value}: a baseline of the benchmark, not for a robot'
            )
        plane = DataPlane(self, self._settings, self._faults, self._wake)
        model = plane.robot.model
        self.get_logger().info(
            f'configured in {time.monotonic() - start_s:.1f} s (warm-up '
            f'{plane.live.warm_up_s:.1f} s): model {model.spec.name} on {model.device}, '
            f'cameras {", ".join(plane.robot.sensors.config.cameras)}'
        )
        return plane

    def _drain(self) -> None:
        if self._plane is not None:
            self._plane.drain()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until the process is told to end; return the exit status."""
    return run_node('oxygen_node', OxygenNode, args)


if __name__ == '__main__':
    sys.exit(main())
