# SPDX-License-Identifier: Apache-2.0
"""All that exists while the tick's node is configured: the tick, its inputs and its outputs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
import os
import time
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, TimeJump
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String

import oxygen_ros.msg as msg

from ..control import apply_to_thread, RealtimeReport
from ..ingest import JointStream, Receipt
from ..robot.actuation import Actuation
from ..robot.faults import FaultLog
from ..robot.tick_settings import ActuationLimits, TickSettings
from ..runtime.tick_loop import TickLoop
from ..types import RobotState
from .actuation.chunk_input import ChunkInput
from .actuation.controller_watch import ControllerWatch
from .actuation.mode_publisher import ModePublisher, ParameterPublisher
from .actuation.target_publisher import TargetPublisher
from .clocks import ClockBridge, describe_jump, watch_time
from .messages import ns_of
from .middleware.endpoints import make_subscription
from .monitoring.actuation_tasks import actuation_task, chunks_task
from .monitoring.diagnostics import DiagnosticsPublisher
from .monitoring.rate_timer import RateTimer


class TickPlane:
    """Made at configure, destroyed at cleanup; started and stopped by activate and deactivate.

    Belongs to the executor's thread.

    :param engine: name of the node whose chunks are played and in whose name targets go out.
    """

    def __init__(self, node: Node, engine: str, settings: TickSettings, faults: FaultLog) -> None:
        self.settings = settings
        self._node = node
        self._faults = faults
        self._state: RobotState | None = None
        self._is_raised = False
        self._clock = ClockBridge(node.get_clock())
        # Of its own, for a group remembers every entity it ever had.
        self._group = MutuallyExclusiveCallbackGroup()
        with ExitStack() as entities:
            targets = TargetPublisher(
                node,
                settings.joints,
                settings.groups,
                settings.tick,
                prefix=engine,
            )
            entities.callback(targets.destroy)
            modes = ModePublisher(node, engine)
            entities.callback(modes.destroy)
            self.actuation = Actuation(
                settings.joints,
                settings.tick,
                settings.limits,
                settings.blend_s,
                lambda: self._state,
                self._clock,
                targets,
                modes.publish,
                node.get_logger(),
                faults,
            )
            self.loop = TickLoop(self.actuation, settings.realtime)
            self._parameters = ParameterPublisher(node, engine)
            entities.callback(self._parameters.destroy)
            self._chunk_input = ChunkInput(settings.joints, self.actuation.buffer)
            self._joints = JointStream(settings.joints, settings.ingest, self._put_state)
            jumps = watch_time(node, faults.guard('time jump', self._on_jump))
            entities.callback(jumps.unregister)
            chunks = self._subscribe(
                msg.ActionChunk,
                f'{engine}/action_chunk',
                self._chunk_input.offer,
                QoSProfile(depth=10),
                entities,
            )
            self._subscribe(
                JointState,
                'joint_states',
                self._on_joints,
                QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
                entities,
            )
            if settings.tick.awaits_limits:
                self._subscribe(
                    String,
                    'robot_description',
                    lambda message: self.actuation.describe(message.data),
                    QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL),
                    entities,
                )
            controllers = ControllerWatch.of(node, settings.controller_manager, targets)
            if controllers is not None:
                entities.callback(controllers.destroy)
            diagnostics = DiagnosticsPublisher(node, engine, self._clock)
            entities.callback(diagnostics.destroy)

            def limits() -> ActuationLimits:
                return self.settings.diagnostics

            diagnostics.add(
                'actuation',
                actuation_task(node, self.actuation, self.loop, targets, controllers, limits),
            )
            diagnostics.add(
                'chunks', chunks_task(node, chunks, self._chunk_input, self.actuation.buffer)
            )
            # On the steady clock: under simulated time a timer on ROS time may never fire.
            self._timer = RateTimer(
                node,
                settings.diagnostics_rate_hz,
                faults.guard('diagnostics', diagnostics.publish),
                Clock(clock_type=ClockType.STEADY_TIME),
                self._group,
            )
            entities.callback(self._timer.destroy)
            self._entities = entities.pop_all()

    def _subscribe(
        self,
        kind: type,
        topic: str,
        callback: Callable[[Any], None],
        qos: QoSProfile,
        entities: ExitStack,
    ) -> Subscription[Any]:
        subscription = make_subscription(
            self._node, kind, topic, self._faults.guard(topic, callback), qos, self._group
        )
        entities.callback(self._node.destroy_subscription, subscription)
        return subscription

    def _put_state(self, state: RobotState) -> None:
        self._state = state

    def _on_joints(self, message: JointState) -> None:
        self._joints.counts.received += 1
        receipt = Receipt(self._clock.now_ns(), self._clock.offset_ns())
        self._joints.take(message.name, message.position, ns_of(message.header.stamp), receipt)

    def _on_jump(self, jump: TimeJump) -> None:
        # Stamps of before bind nothing after it; chunks are on the steady clock, and the engine
        # has them forgotten by a new epoch.
        self._joints.begin()
        self._node.get_logger().warning(
            f'{describe_jump(jump)}: joint states are taken from there on',
            throttle_duration_sec=5.0,
        )

    @property
    def realtime_report(self) -> RealtimeReport:
        """What came of the real-time settings."""
        return self.loop.realtime_report

    def start(self) -> None:
        """Start the tick, from the measured joints and with no chunk."""
        self._chunk_input.restart()
        self.actuation.restart()
        self.loop.prepare()
        self.loop.start(time.monotonic_ns() + self.settings.tick.period_ns)
        self._raise_executor()

    def stop(self, reason: str, timeout_s: float) -> bool:
        """Hold by a last target, stop, disarm; False: the tick did not stop in time."""
        stopped = self.loop.stop(reason, timeout_s)
        self.loop.release()
        self.actuation.arming.disarm()
        self._lower_executor()
        return stopped

    def _raise_executor(self) -> None:
        """Let this thread run right below the tick.

        The two share the interpreter: where this one lost its core while holding it, the tick
        would wait for both (measured under full load: 5 ms instead of 0.6).
        """
        settings = self.settings.realtime
        if settings is not None and settings.fifo_priority:
            report = apply_to_thread(
                replace(
                    settings,
                    fifo_priority=max(settings.fifo_priority - 1, 1),
                    process_priority=0,
                    cpus=(),
                )
            )
            self._is_raised = not report.refused

    def _lower_executor(self) -> None:
        if self._is_raised:
            self._is_raised = False
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    def destroy(self) -> None:
        """Destroy all entities; only when stopped."""
        self._entities.close()

    def reconfigure(self, settings: TickSettings) -> None:
        """Use settings of which only live ones differ."""
        before, self.settings = self.settings, settings
        self._parameters.publish()
        self._timer.set_rate(settings.diagnostics_rate_hz)
        if not settings.ticks_like(before):
            self.actuation.reconfigure(settings.tick, settings.limits)
