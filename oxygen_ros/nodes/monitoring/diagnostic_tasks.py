# SPDX-License-Identifier: Apache-2.0
"""What /diagnostics shows: the robot's own findings, and who publishes and listens around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from ...robot import findings
from ...robot.robot import Robot
from ...robot.settings import DiagnosticLimits
from ...robot.status import Level, Status
from ..middleware.endpoints import num_publishers
from ..sensors.inputs import Inputs
from .diagnostics import DiagnosticsPublisher, Task, with_graph

Limits = Callable[[], DiagnosticLimits]


def add_robot_tasks(
    diagnostics: DiagnosticsPublisher,
    node: Node,
    robot: Robot,
    inputs: Inputs,
    warm_up_s: float,
    limits: Limits,
) -> None:
    """Add the status of each part of a robot but its actuation."""
    for camera in robot.sensors.config.cameras:
        diagnostics.add(f'camera {camera}', _camera_task(node, robot, inputs, camera, limits))
    diagnostics.add('joint states', _joints_task(node, robot, inputs))
    engine = findings.EngineStatus(robot)

    def engine_task() -> Status:
        status = engine.read(robot.clock.now_ns(), limits())
        return with_graph(status, node, [inputs.instruction_subscription], Level.WARN)

    diagnostics.add('engine', engine_task)
    diagnostics.add('memory', lambda: findings.memory_status(robot))
    diagnostics.add('dialogue', lambda: findings.dialogue_status(robot))
    diagnostics.add('model', lambda: findings.model_status(robot, warm_up_s))


def _silence(node: Node, subscriptions: list[Subscription[Any]]) -> str:
    if num_publishers(node, subscriptions):
        return ''
    topics = ' or '.join(subscription.topic_name for subscription in subscriptions)
    return f'nobody publishes {topics}'


def _camera_task(node: Node, robot: Robot, inputs: Inputs, camera: str, limits: Limits) -> Task:
    subscriptions = inputs.camera_subscriptions[camera]
    images = findings.CameraStatus(
        robot.cameras.inputs[camera], robot.sensors, lambda: _silence(node, subscriptions)
    )

    def task() -> Status:
        status = images.read(
            robot.clock.now_ns(), robot.health.is_running, limits().min_camera_rate_hz
        )
        return with_graph(status, node, subscriptions, Level.ERROR)

    return task


def _joints_task(node: Node, robot: Robot, inputs: Inputs) -> Task:
    subscriptions = [inputs.joint_subscription]
    states = findings.JointStatus(
        robot.joints, robot.sensors, lambda: _silence(node, subscriptions)
    )

    def task() -> Status:
        return with_graph(states.read(robot.clock.now_ns()), node, subscriptions, Level.ERROR)

    return task
