"""All that exists while the node is configured: runtime, inputs, outputs, timers."""
from __future__ import annotations

from collections.abc import Callable
import functools
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String
import torch

import oxygen_ros.msg as msg

from ..control import Decision, hold_reasons
from ..models import create_model
from ..runtime.runtime import Runtime
from ..types import ActionChunk
from . import diagnostic_tasks as tasks
from .camera_ingest import CameraIngest
from .clocks import ClockBridge
from .conversions import chunk_msg
from .diagnostics import DiagnosticsPublisher
from .dialogue_server import DialogueServer
from .engine_requests import EngineRequests
from .faults import FaultLog
from .joint_state_input import JointStateInput
from .latency_publisher import LatencyPublisher
from .run_record import write_run_record
from .scene_graph_server import SceneGraphServer
from .settings import NodeSettings
from .target_publisher import TargetPublisher

_LATENCY_PERIOD_S = 0.1
_DIAGNOSTICS_PERIOD_S = 1.0
_RAW = (Image, 'image_raw')
_COMPRESSED = (CompressedImage, 'image_raw/compressed')
_TRANSPORTS: dict[str, tuple[tuple[Any, str], ...]] = {
    'raw': (_RAW,), 'compressed': (_COMPRESSED,), 'auto': (_RAW, _COMPRESSED)}


class DataPlane:
    """Made at configure, destroyed at cleanup; started and stopped by activate and deactivate.

    Belongs to the executor's thread, save for what the tick, engine and ingest threads call.

    :param wake: asks the executor to call `drain`; may be called by any thread.
    :raises ValueError: the settings cannot be met by this model.
    """

    def __init__(self, node: Node, settings: NodeSettings, dialogue: DialogueServer,
                 scene: SceneGraphServer, faults: FaultLog, wake: Callable[[], None]) -> None:
        self.settings = settings
        self._node = node
        self._dialogue = dialogue
        self._scene = scene
        self._faults = faults
        self._joints = list(settings.joints)
        self._clock = ClockBridge(node.get_clock())
        self._entities: list[Subscription | Timer] = []
        # Of its own, for a group remembers every entity it ever had.
        self._group = MutuallyExclusiveCallbackGroup()
        self._num_faults_seen = 0
        self._is_started = False
        if settings.num_threads:
            torch.set_num_threads(settings.num_threads)
        model = create_model(settings.model_name, **settings.model_options)
        self.runtime = Runtime(settings.runtime, model, self._on_target, wake)
        self.requests = EngineRequests(self.runtime)
        scene.configure(settings.memory, self.runtime, settings.runtime.engine.max_text_tokens)
        self._ingest = CameraIngest(
            settings.runtime.sensors.cameras, settings.future_tolerance_s, self._clock,
            self.runtime.sensors.put_frame, self._on_time_jump, faults)
        self._joint_input = JointStateInput(
            self._joints, settings.future_tolerance_s, self._clock, self.runtime.sensors.put_state)
        # Entities last: nothing above leaves any behind when it fails.
        self.targets = TargetPublisher(
            node, self._joints, settings.runtime.tick, self._clock, faults)
        self._chunks = node.create_publisher(msg.ActionChunk, '~/action_chunk', 10)
        self._latency = LatencyPublisher(
            node, self.runtime, self.targets.statistics, dialogue, self._clock)
        self._diagnostics = DiagnosticsPublisher(node, model.spec.name, self._clock)
        self._add_diagnostics()
        try:
            self._subscribe()
        except Exception:  # noqa: B902 no half of a node stays behind
            self.destroy()
            raise
        self._create_timers()

    # Making.

    def _add_diagnostics(self) -> None:
        runtime = self.runtime
        add = self._diagnostics.add

        def limits() -> tasks.DiagnosticLimits:
            return self.settings.diagnostics

        add('actuation', tasks.actuation_task(runtime, self.targets, limits))
        for name, source in self._ingest.inputs.items():
            add(f'camera {name}', tasks.camera_task(runtime, source, limits))
        add('joint states', tasks.joints_task(runtime, self._joint_input.counts))
        add('engine', tasks.engine_task(runtime, limits, self._faults))
        add('memory', tasks.memory_task(runtime, self._scene))
        add('dialogue', tasks.dialogue_task(self._dialogue, self.requests))
        add('model', tasks.model_task(runtime))

    def _subscribe(self) -> None:
        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        create = functools.partial(self._node.create_subscription, callback_group=self._group)
        for camera in self.settings.runtime.sensors.cameras:
            for message_type, topic in _TRANSPORTS[self.settings.image_transport]:
                callback = functools.partial(self._ingest.offer, camera)
                self._entities.append(create(
                    message_type, f'{camera}/{topic}',
                    self._faults.guard(f'images of {camera}', callback), newest))
        self._entities.append(create(
            JointState, 'joint_states',
            self._faults.guard('joint_states', self._joint_input.offer), QoSProfile(depth=1)))
        self._entities.append(create(
            String, 'instruction',
            self._faults.guard('instruction', self._on_instruction), latched))

    def _create_timers(self) -> None:
        # On the steady clock: under simulated time a timer on ROS time may never fire.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        periods = [(_LATENCY_PERIOD_S, 'latency', self._on_latency),
                   (_DIAGNOSTICS_PERIOD_S, 'diagnostics', self._diagnostics.publish)]
        if self.settings.memory.period_s > 0.0:
            periods.append((self.settings.memory.period_s, 'scene graph',
                            self._scene.update_in_background))
        for period_s, name, callback in periods:
            self._entities.append(self._node.create_timer(
                period_s, self._faults.guard(name, callback), clock=steady,
                callback_group=self._group))

    # Life.

    @property
    def is_active(self) -> bool:
        """Whether engine and tick run."""
        return self._is_started

    def start(self) -> None:
        """Start engine, tick and ingest."""
        self.targets.statistics.reset()
        self._latency.restart()
        self._ingest.start()
        self.runtime.activate()
        self._dialogue.start(self.requests, self.settings.dialogue)
        self._scene.start(self.requests)
        self._is_started = True

    def stop(self, reason: str = hold_reasons.DEACTIVATED, timeout_s: float = 5.0) -> bool:
        """Hold, stop everything and end every request; False: the engine did not stop in time."""
        was_active = self._is_started
        self._is_started = False
        self._dialogue.stop()
        self._scene.stop()
        stopped = self.runtime.deactivate(reason, timeout_s)
        self._ingest.stop()
        self.runtime.arming.disarm()
        self.drain()
        self.requests.fail_all('the engine has stopped')
        if was_active and self.settings.record_file:
            try:
                write_run_record(self.settings.record_file, self.runtime, self._ingest)
            except OSError as error:
                self._node.get_logger().error(f'record_file: {error}')
        return stopped

    def destroy(self) -> None:
        """Take all entities back; only when stopped."""
        for entity in self._entities:
            if isinstance(entity, Timer):
                self._node.destroy_timer(entity)
            else:
                self._node.destroy_subscription(entity)
        self._entities.clear()
        self._node.destroy_publisher(self._chunks)
        self.targets.destroy()
        self._latency.destroy()
        self._diagnostics.destroy()
        self._scene.cleanup()

    def reconfigure(self, settings: NodeSettings) -> None:
        """Use settings of which only live ones differ."""
        before, self.settings = self.settings, settings
        tick = settings.runtime.tick
        if tick != before.runtime.tick or not settings.has_limits_of(before):
            self.runtime.tick.reconfigure(tick, settings.runtime.limits)
            self.targets.statistics.max_observation_age_ns = tick.max_observation_age_ns
        self._dialogue.reconfigure(settings.dialogue)

    # Events.

    def _on_target(self, decision: Decision, lateness_ns: int) -> None:
        self.targets.publish(decision, lateness_ns)

    def drain(self) -> None:
        """Publish and hand on what the engine produced since the last call."""
        text = []
        for event in self.runtime.drain():
            if isinstance(event, ActionChunk):
                self._chunks.publish(chunk_msg(event, self._joints))
            else:
                text.append(event)
        self.requests.dispatch(text)
        self._dialogue.publish_feedback()
        if self.runtime.engine_thread.num_faults != self._num_faults_seen and self.runtime.faults:
            self._num_faults_seen = self.runtime.engine_thread.num_faults
            self._node.get_logger().error(
                f'engine failed ({self._num_faults_seen} in all):\n{self.runtime.faults[-1]}')

    def _on_latency(self) -> None:
        if not self.is_active:
            return
        if self.runtime.engine_thread.failed:
            self.requests.fail_all('the engine has failed')
        self._latency.publish()

    def _on_instruction(self, message: String) -> None:
        problem = self.set_instruction(message.data)
        if problem:
            self._node.get_logger().warning(problem, throttle_duration_sec=5.0)

    def set_instruction(self, instruction: str) -> str:
        """Hand an instruction to the engine; return why it is refused, or nothing."""
        limit = self.settings.dialogue.max_prompt_bytes
        size = len(instruction.encode())
        if size > limit:
            return f'instruction: expected at most {limit} bytes, got {size}'
        self.runtime.set_instruction(instruction)
        return ''

    def _on_time_jump(self, camera: str) -> None:
        self._node.get_logger().warning(
            f'stamps of {camera} jumped back: chunks and images from before are dropped',
            throttle_duration_sec=5.0)
        self.runtime.reset()
