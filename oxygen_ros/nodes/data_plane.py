# SPDX-License-Identifier: Apache-2.0
"""All that exists while the node is configured: the robot, its topics and its timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, TimeJump
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

import oxygen_ros.msg as msg

from ..control import ArmState, Decision, hold_reasons, RealtimeReport
from ..robot.faults import FaultLog
from ..robot.messages import chunk_message, scene_message
from ..robot.robot import load_model, Robot
from ..robot.run_record import write_run_record
from ..robot.settings import DiagnosticLimits, EngineClock, Publish, RobotSettings
from ..robot.shell import Outlets
from ..runtime.live_robot import LiveRobot
from ..runtime.lockstep_robot import LockstepRobot
from ..runtime.tick_loop import TickLoop
from ..types import ActionChunk, SceneUpdate
from .actuation.controller_watch import ControllerWatch
from .actuation.mode_publisher import (
    mode_qos,
    ModePublisher,
    parameters_qos,
    PARAMETERS_TOPIC,
    parse_parameters,
)
from .actuation.target_publisher import TargetPublisher
from .clocks import ClockBridge, describe_jump, is_small, watch_each_time, watch_time
from .messages import make_message, ns_of
from .middleware.endpoints import make_publisher, make_subscription
from .monitoring.actuation_tasks import actuation_task, elsewhere_task
from .monitoring.diagnostic_tasks import add_robot_tasks
from .monitoring.diagnostics import DiagnosticsPublisher
from .monitoring.latency_publisher import LatencyPublisher
from .monitoring.rate_timer import RateTimer
from .parameters import read_all
from .requests.markers import scene_markers
from .sensors.inputs import Inputs, NEWEST
from .sensors.tf_poses import TfPoses

_WATCH_PERIOD_S = 0.1
# In lockstep no message may be missed.
_EACH = QoSProfile(depth=1000)


class NodeOutlets(Outlets):
    """A robot's results as topics; publishing needs no executor."""

    def __init__(self, node: Node, settings: RobotSettings, entities: ExitStack) -> None:
        # None: a tick in another process has them.
        self.targets: TargetPublisher | None = None
        self._modes: ModePublisher | None = None
        if settings.publish is not Publish.ELSEWHERE:
            self.targets = TargetPublisher(node, settings.joints, settings.groups, settings.tick)
            entities.callback(self.targets.destroy)
            self._modes = ModePublisher(node, '~')
            entities.callback(self._modes.destroy)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._joints = list(settings.joints)
        self._chunks = make_publisher(node, msg.ActionChunk, '~/action_chunk', 10)
        self._utterances = make_publisher(node, String, '~/utterance', 10)
        self._scenes = make_publisher(node, msg.SceneGraph, '~/scene_graph', latched)
        self._markers = make_publisher(node, MarkerArray, '~/markers', latched)
        for publisher in (self._chunks, self._utterances, self._scenes, self._markers):
            entities.callback(node.destroy_publisher, publisher)

    def command(self, values: NDArray[np.float64]) -> None:
        """Send a target to the actuators."""
        assert self.targets is not None  # or no tick runs in this process
        self.targets.command(values)

    def target(self, decision: Decision, lateness_ns: int, stamp_ns: int) -> None:
        """Publish ~/target."""
        assert self.targets is not None
        self.targets.target(decision, lateness_ns, stamp_ns)

    def mode(self, state: ArmState, stamp_ns: int, request: str) -> None:
        """Publish ~/mode."""
        if self._modes is not None:
            self._modes.publish(state, stamp_ns, request)

    def chunk(self, chunk: ActionChunk) -> None:
        """Publish ~/action_chunk."""
        self._chunks.publish(chunk_message(make_message, chunk, self._joints))

    def utterance(self, sentence: str) -> None:
        """Publish ~/utterance."""
        self._utterances.publish(String(data=sentence))

    def scene(self, update: SceneUpdate, verdicts: Mapping[int, str]) -> None:
        """Publish ~/scene_graph and ~/markers."""
        self._scenes.publish(scene_message(make_message, update, verdicts))
        self._markers.publish(scene_markers(update))


class DataPlane:
    """Made at configure, destroyed at cleanup; started and stopped by activate and deactivate.

    Belongs to the executor's thread.

    :param wake: asks the executor to call `drain`; any thread may call it.
    :raises ValueError: the settings cannot be met by this model.
    """

    def __init__(
        self, node: Node, settings: RobotSettings, faults: FaultLog, wake: Callable[[], None]
    ) -> None:
        self._node = node
        is_lockstep = settings.clock is EngineClock.ROS
        if is_lockstep and not node.get_parameter('use_sim_time').value:
            raise ValueError('engine.clock: expected steady without use_sim_time, got ros')
        settings, model, note = load_model(settings)
        if note:
            node.get_logger().info(note)
        self.settings = settings
        bridge = ClockBridge(node.get_clock())
        with ExitStack() as entities:  # nothing is left behind when a later one fails
            outlets = NodeOutlets(node, settings, entities)
            poses, log = self._make_poses(entities), node.get_logger()
            self.live: LiveRobot | LockstepRobot
            if is_lockstep:
                self.live = LockstepRobot(
                    settings, model, outlets, bridge.ros_now_ns, log, faults, wake, poses
                )
            else:
                self.live = LiveRobot(settings, model, outlets, bridge, log, faults, wake, poses)
            self.robot = self.live.robot
            self.actuation = self.robot.actuation
            entities.callback(self.live.close)
            inputs = Inputs(node, settings, self, faults, _EACH if self._is_lockstep else NEWEST)
            entities.callback(inputs.destroy)
            watch = watch_each_time if self._is_lockstep else watch_time
            jumps = watch(node, faults.guard('time jump', self._on_time))
            entities.callback(jumps.unregister)
            if outlets.targets is None:
                self._listen_to_tick(faults, entities)
            self._latency = LatencyPublisher(node, self.robot)
            entities.callback(self._latency.destroy)
            self._diagnostics = DiagnosticsPublisher(node, model.spec.name, bridge)
            entities.callback(self._diagnostics.destroy)
            self._add_diagnostics(outlets.targets, inputs, entities)
            self._create_timers(faults, entities)
            self._entities = entities.pop_all()

    @property
    def _is_lockstep(self) -> bool:
        return isinstance(self.live, LockstepRobot)

    # Making.

    def _make_poses(self, entities: ExitStack) -> TfPoses | None:
        positions = self.settings.memory.positions
        if not positions.frame_id or positions.camera_poses:
            return None
        poses = TfPoses(self._node, positions.frame_id)
        entities.callback(poses.destroy)
        return poses

    def _listen_to_tick(self, faults: FaultLog, entities: ExitStack) -> None:
        """Take mode and parameters from the process that ticks."""
        records, group = self.robot.records, MutuallyExclusiveCallbackGroup()

        def on_mode(message: msg.Mode) -> None:
            records.mode(message.mode, ns_of(message.stamp), message.reason)

        def on_parameters(message: String) -> None:
            records.tick_parameters(parse_parameters(message.data))

        for kind, topic, callback, qos in (
            (msg.Mode, '~/mode', faults.guard('mode', on_mode), mode_qos()),
            (
                String,
                f'~/{PARAMETERS_TOPIC}',
                faults.guard(PARAMETERS_TOPIC, on_parameters),
                parameters_qos(),
            ),
        ):
            subscription = make_subscription(self._node, kind, topic, callback, qos, group)
            entities.callback(self._node.destroy_subscription, subscription)

    def _add_diagnostics(
        self, targets: TargetPublisher | None, inputs: Inputs, entities: ExitStack
    ) -> None:
        def limits() -> DiagnosticLimits:
            return self.settings.diagnostics

        add, node, robot = self._diagnostics.add, self._node, self.robot
        if targets is None:
            add('actuation', elsewhere_task(node))
        else:
            controllers = ControllerWatch.of(node, self.settings.controller_manager, targets)
            if controllers is not None:
                entities.callback(controllers.destroy)
            add(
                'actuation',
                actuation_task(node, robot.actuation, self._loop, targets, controllers, limits),
            )
        add_robot_tasks(self._diagnostics, node, robot, inputs, self.live.warm_up_s, limits)

    def _create_timers(self, faults: FaultLog, entities: ExitStack) -> None:
        # On the steady clock: under simulated time a timer on ROS time may never fire.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        # Of their own, for a group remembers every entity it ever had.
        group = MutuallyExclusiveCallbackGroup()

        def timer(name: str, rate_hz: float, callback: Callable[[], None]) -> RateTimer:
            made = RateTimer(self._node, rate_hz, faults.guard(name, callback), steady, group)
            entities.callback(made.destroy)
            return made

        period_s = self.settings.memory.period_s
        if not self._is_lockstep:  # in which these are part of the robot's own time
            timer('watch', 1.0 / _WATCH_PERIOD_S, self._on_watch)
            timer(
                'scene graph',
                1.0 / period_s if period_s > 0.0 else 0.0,
                self.robot.scene.update_in_background,
            )
        self._latency_timer = timer('latency', self.settings.latency_rate_hz, self._on_latency)
        self._diagnostics_timer = timer(
            'diagnostics', self.settings.diagnostics_rate_hz, self._diagnostics.publish
        )

    @property
    def _loop(self) -> TickLoop | None:
        return self.live.loop if isinstance(self.live, LiveRobot) else None

    @property
    def realtime_report(self) -> RealtimeReport:
        """What came of the real-time settings."""
        return RealtimeReport() if self._loop is None else self._loop.realtime_report

    # Life.

    def start(self) -> None:
        """Start engine, tick and ingest."""
        self._latency.restart()
        self.live.start(read_all(self._node))

    def stop(self, reason: str = hold_reasons.DEACTIVATED, timeout_s: float = 5.0) -> bool:
        """Hold, stop everything and end every request; False: the engine did not stop in time."""
        was_active = self.live.is_active
        stopped = self.live.stop(reason, timeout_s)
        if was_active and self.settings.record_file:
            try:
                write_run_record(self.settings.record_file, self.robot)
            except OSError as error:
                self._node.get_logger().error(f'record_file: {error}')
        return stopped

    def destroy(self) -> None:
        """Destroy all entities and free the robot's memory; only when stopped."""
        self._entities.close()

    def reconfigure(self, settings: RobotSettings) -> None:
        """Use settings of which only live ones differ."""
        self.settings = settings
        parameters = read_all(self._node)
        self.submit(lambda robot: robot.reconfigure(settings, parameters))
        self._latency_timer.set_rate(settings.latency_rate_hz)
        self._diagnostics_timer.set_rate(settings.diagnostics_rate_hz)

    # The way to the robot, see `RobotAccess`.

    def submit(self, call: Callable[[Robot], None]) -> None:
        """Have a call made in the robot's thread."""
        self.live.submit(call)

    def deliver(self, call: Callable[[], None]) -> None:
        """Have a call made in the executor's thread."""
        self.live.deliver(call)

    # Events.

    def drain(self) -> None:
        """Take what the robot has for this thread."""
        self.live.take_deliveries()

    def _on_time(self, jump: TimeJump) -> None:
        if isinstance(self.live, LockstepRobot) and is_small(jump):
            self.live.pass_time()
        else:
            self.live.time_jumped(describe_jump(jump))

    def _on_watch(self) -> None:
        if self.live.is_active:
            self.robot.watch()

    def _on_latency(self) -> None:
        if self.live.is_active:
            self._latency.publish()
