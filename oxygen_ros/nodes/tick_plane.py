# SPDX-License-Identifier: Apache-2.0
"""All that exists while the tick's node is configured: the loop, its inputs and its outputs."""

from __future__ import annotations

from dataclasses import replace
import os
import time
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, TimeJump
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

import oxygen_ros.msg as msg

from ..control import apply_to_thread
from ..robot.tick_settings import ActuationLimits, TickSettings
from ..runtime.tick_loop import TickLoop, TickLoopConfig
from ..types import RobotState
from .actuation.chunk_input import ChunkInput
from .actuation.mode_publisher import ModePublisher
from .actuation.parameter_publisher import ParameterPublisher
from .actuation.robot_link import RobotLink
from .actuation.target_publisher import TargetPublisher
from .clocks import ClockBridge
from .faults import FaultLog
from .middleware.endpoints import make_subscription
from .monitoring.actuation_diagnostics import actuation_task, chunks_task
from .monitoring.diagnostics import DiagnosticsPublisher
from .monitoring.rate_timer import RateTimer
from .sensors.joint_state_input import JointStateInput
from .time_jumps import describe, watch_time


class TickPlane:
    """Made at configure, destroyed at cleanup; started and stopped by activate and deactivate.

    Belongs to the executor's thread, save for what the tick calls.

    :param engine: name of the node whose chunks are played and in whose name targets go out.
    """

    def __init__(self, node: Node, engine: str, settings: TickSettings, faults: FaultLog) -> None:
        self.settings = settings
        self._node = node
        self._faults = faults
        self._state: RobotState | None = None
        self._is_raised = False
        clock = ClockBridge(node.get_clock())
        self.targets = TargetPublisher(
            node,
            settings.joints,
            settings.groups,
            settings.tick,
            clock,
            faults,
            prefix=engine,
        )
        config = TickLoopConfig(
            settings.tick, settings.limits, settings.blend_s, settings.realtime
        )
        self.loop = TickLoop(config, self.targets.publish, lambda: self._state)
        self._link = RobotLink(
            node,
            settings.joints,
            self.loop.tick,
            settings.limits,
            settings.controller_manager,
            self.targets,
            faults,
        )
        self._modes = ModePublisher(node, engine, self.loop.arming, clock, faults)
        self._told = ParameterPublisher(node, engine)
        self._chunk_input = ChunkInput(settings.joints, self.loop.buffer)
        self._joint_input = JointStateInput(
            settings.joints, settings.ingest, clock, self._put_state
        )
        self._time = watch_time(node, faults.guard('time jump', self._clock_jumped))
        # Of its own, for a group remembers every entity it ever had.
        self._group = MutuallyExclusiveCallbackGroup()
        self._subscriptions = [
            self._subscribe(
                msg.ActionChunk,
                f'{engine}/action_chunk',
                self._chunk_input.offer,
                QoSProfile(depth=10),
            ),
            self._subscribe(
                JointState,
                'joint_states',
                self._joint_input.offer,
                QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
            ),
        ]
        self._diagnostics = DiagnosticsPublisher(node, engine, clock)

        def limits() -> ActuationLimits:
            return self.settings.diagnostics

        self._diagnostics.add(
            'actuation', actuation_task(node, self.loop, self.targets, self._link, limits)
        )
        self._diagnostics.add(
            'chunks',
            chunks_task(node, self._subscriptions[0], self._chunk_input, self.loop.buffer),
        )
        # On the steady clock: under simulated time a timer on ROS time may never fire.
        self._timer = RateTimer(
            node,
            settings.diagnostics_rate_hz,
            faults.guard('diagnostics', self._diagnostics.publish),
            Clock(clock_type=ClockType.STEADY_TIME),
            self._group,
        )

    def _subscribe(
        self, kind: type, topic: str, callback: Any, qos: QoSProfile
    ) -> Subscription[Any]:
        return make_subscription(
            self._node, kind, topic, self._faults.guard(topic, callback), qos, self._group
        )

    def _put_state(self, state: RobotState) -> None:
        self._state = state

    def _clock_jumped(self, jump: TimeJump) -> None:
        # Stamps of before bind nothing after it; chunks are on the steady clock, and the engine
        # has them forgotten by a new epoch.
        self._joint_input.stream.begin()
        self._node.get_logger().warning(
            f'{describe(jump)}: joint states are taken from there on', throttle_duration_sec=5.0
        )

    def start(self) -> None:
        """Start the tick, from the measured joints and with no chunk."""
        self.targets.statistics.reset()
        self._chunk_input.restart()
        self.loop.prepare()
        self.loop.start(time.monotonic_ns() + self.settings.tick.period_ns)
        self._raise_executor()

    def stop(self, reason: str, timeout_s: float) -> bool:
        """Hold by a last target, stop, disarm; False: the tick did not stop in time."""
        stopped = self.loop.stop(reason, timeout_s)
        self.loop.release()
        self.loop.arming.disarm()
        self._lower_executor()
        return stopped

    def _raise_executor(self) -> None:
        """Let this thread run right below the tick.

        The two share the interpreter: where this one lost its core while holding it, the tick
        would wait for both (measured under full load: 5 ms instead of 0.6).
        """
        settings = self.settings.realtime
        if settings.fifo_priority:
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
        """Take all entities back; only when stopped."""
        self._time.unregister()
        self._timer.destroy()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._link.destroy()
        self.targets.destroy()
        self._modes.destroy()
        self._told.destroy()
        self._diagnostics.destroy()

    def reconfigure(self, settings: TickSettings) -> None:
        """Use settings of which only live ones differ."""
        before, self.settings = self.settings, settings
        self._told.publish()
        self._timer.set_rate(settings.diagnostics_rate_hz)
        if not settings.ticks_like(before):
            self._link.reconfigure(settings.tick, settings.limits)
            self.targets.statistics.max_observation_age_ns = settings.tick.max_observation_age_ns
