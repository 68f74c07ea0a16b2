# SPDX-License-Identifier: Apache-2.0
"""All that exists while the node is configured: runtime, inputs, outputs, timers."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
import torch

import oxygen_ros.msg as msg

from ..control import Decision, hold_reasons
from ..models.registry import create_model
from ..robot.settings import DiagnosticLimits, fit_to_model, Publish, RobotSettings
from ..runtime.runtime import Runtime
from ..types import ActionChunk
from .actuation.robot_link import RobotLink
from .actuation.target_publisher import TargetPublisher
from .clocks import ClockBridge
from .conversions import chunk_msg
from .faults import FaultLog
from .middleware.endpoints import make_publisher
from .monitoring import diagnostic_tasks as tasks
from .monitoring.actuation_diagnostics import actuation_task, elsewhere_task
from .monitoring.diagnostics import DiagnosticsPublisher
from .monitoring.latency_publisher import LatencyPublisher
from .monitoring.rate_timer import RateTimer
from .parameters import read_all
from .records.memory_queries import MemoryQueries
from .records.run_memory import RunMemory
from .records.run_record import write_run_record
from .records.tick_watch import TickWatch
from .requests.dialogue_server import DialogueServer
from .requests.engine_requests import EngineRequests
from .requests.scene_graph_server import SceneGraphServer
from .requests.scene_positions import ScenePositions
from .sensors.inputs import Inputs
from .world_changes import WorldChanges

_WATCH_PERIOD_S = 0.1


class DataPlane:
    """Made at configure, destroyed at cleanup; started and stopped by activate and deactivate.

    Belongs to the executor's thread, save for what the tick, engine and ingest threads call.

    :param wake: asks the executor to call `drain`; may be called by any thread.
    :raises ValueError: the settings cannot be met by this model.
    """

    def __init__(
        self,
        node: Node,
        settings: RobotSettings,
        dialogue: DialogueServer,
        scene: SceneGraphServer,
        queries: MemoryQueries,
        faults: FaultLog,
        wake: Callable[[], None],
    ) -> None:
        self.settings, self._node = settings, node
        self._dialogue, self._scene, self._queries = dialogue, scene, queries
        self._faults = faults
        self._joints = list(settings.joints)
        self._clock = ClockBridge(node.get_clock())
        self._num_faults_seen = 0
        self.is_active = False  # engine and tick run
        if settings.num_threads:
            torch.set_num_threads(settings.num_threads)
        model = create_model(settings.model.source, settings.model.options)
        config, note = fit_to_model(settings, model.spec)
        if note:
            node.get_logger().info(note)
        self.runtime = Runtime(config, model, self._on_target, wake)
        self.requests = EngineRequests(self.runtime)
        scene.configure(settings.memory, self.runtime, settings.engine.max_text_tokens)
        self._memory = dialogue.memory = scene.memory = RunMemory(
            settings.records,
            settings.memory.scene_format.vocabulary,
            self.runtime,
            self._clock,
            faults,
        )
        # Entities last: nothing above leaves any behind when it fails.
        if settings.memory.positions.frame_id:
            scene.positions = ScenePositions(
                node, settings.memory.positions, settings.memory.scene_format.cameras, faults
            )
        self._world = WorldChanges(node, self.runtime, faults)
        self._inputs = self._world.inputs = Inputs(
            node,
            settings,
            self.runtime.sensors,
            self._clock,
            self._on_instruction,
            self._world.camera_jumped,
            self._world.camera_resized,
            faults,
        )
        # None: a tick in another process has them
        self.targets: TargetPublisher | None = None
        self._link: RobotLink | None = None
        if settings.publish is not Publish.ELSEWHERE:
            self.targets = TargetPublisher(
                node, self._joints, settings.groups, settings.tick, self._clock, faults
            )
            self._link = RobotLink(
                node,
                self._joints,
                self.runtime.tick,
                settings.limits,
                settings.controller_manager,
                self.targets,
                faults,
            )
        self._tick_watch = TickWatch(node, self.runtime, self._clock, self._memory, faults, wake)
        self._chunks = make_publisher(node, msg.ActionChunk, '~/action_chunk', 10)
        self._latency = LatencyPublisher(node, self.runtime, self.targets, dialogue, self._clock)
        self._diagnostics = DiagnosticsPublisher(node, model.spec.name, self._clock)
        self._add_diagnostics()
        self._create_timers()
        queries.configure(settings.records.store_file, settings.records.recall_tokens)

    # Making.

    def _add_diagnostics(self) -> None:
        def limits() -> DiagnosticLimits:
            return self.settings.diagnostics

        add = self._diagnostics.add
        add(
            'actuation',
            elsewhere_task(self._node)
            if self.targets is None or self._link is None
            else actuation_task(self._node, self.runtime.loop, self.targets, self._link, limits),
        )
        tasks.add_tasks(add, self._node, self.runtime, self._inputs, limits, self._faults)
        add('memory', tasks.memory_task(self.runtime, self._scene, self._memory))
        add('dialogue', tasks.dialogue_task(self._dialogue, self.requests))
        add('model', tasks.model_task(self.runtime))

    def _create_timers(self) -> None:
        # On the steady clock: under simulated time a timer on ROS time may never fire.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        periods = [(_WATCH_PERIOD_S, 'watch', self._on_watch)]
        if self.settings.memory.period_s > 0.0:
            periods.append(
                (self.settings.memory.period_s, 'scene graph', self._scene.update_in_background)
            )
        # Of their own, for a group remembers every entity it ever had.
        group = MutuallyExclusiveCallbackGroup()
        self._timers = [
            self._node.create_timer(
                period_s, self._faults.guard(name, callback), clock=steady, callback_group=group
            )
            for period_s, name, callback in periods
        ]
        self._latency_timer = RateTimer(
            self._node,
            self.settings.latency_rate_hz,
            self._faults.guard('latency', self._on_latency),
            steady,
            group,
        )
        self._diagnostics_timer = RateTimer(
            self._node,
            self.settings.diagnostics_rate_hz,
            self._faults.guard('diagnostics', self._diagnostics.publish),
            steady,
            group,
        )

    # Life.

    def start(self) -> None:
        """Start engine, tick and ingest."""
        if self.targets is not None:
            self.targets.statistics.reset()
        self._latency.restart()
        self._inputs.ingest.start()
        self.runtime.activate()
        self._tick_watch.drain()
        self._memory.start(read_all(self._node))
        self._dialogue.start(self.requests, self.settings.dialogue)
        self._scene.start(self.requests)
        self.is_active = True

    def stop(self, reason: str = hold_reasons.DEACTIVATED, timeout_s: float = 5.0) -> bool:
        """Hold, stop everything and end every request; False: the engine did not stop in time."""
        was_active = self.is_active
        self.is_active = False
        self._dialogue.stop()
        self._scene.stop()
        stopped = self.runtime.deactivate(reason, timeout_s)
        self._inputs.ingest.stop()
        self.runtime.arming.disarm()
        self.drain()
        self.requests.fail_all('the engine has stopped')
        if not self._memory.stop(reason):
            self._node.get_logger().error('memory: not all was written before the end')
        if was_active and self.settings.record_file:
            try:
                write_run_record(
                    self.settings.record_file,
                    self.runtime,
                    self._inputs.ingest,
                    self._scene.counts,
                    self._memory.status,
                )
            except OSError as error:
                self._node.get_logger().error(f'record_file: {error}')
        return stopped

    def destroy(self) -> None:
        """Take all entities back; only when stopped."""
        for timer in self._timers:
            self._node.destroy_timer(timer)
        self._latency_timer.destroy()
        self._diagnostics_timer.destroy()
        self._world.destroy()
        self._inputs.destroy()
        self._tick_watch.destroy()
        self._node.destroy_publisher(self._chunks)
        if self.targets is not None and self._link is not None:
            self._link.destroy()
            self.targets.destroy()
        self._latency.destroy()
        self._diagnostics.destroy()
        self._dialogue.memory = self._scene.memory = None
        self._scene.cleanup()
        self._queries.cleanup()

    def reconfigure(self, settings: RobotSettings) -> None:
        """Use settings of which only live ones differ."""
        before, self.settings = self.settings, settings
        tick = settings.tick
        if not settings.ticks_like(before) and self.targets is not None and self._link is not None:
            self._link.reconfigure(tick, settings.limits)
            self.targets.statistics.max_observation_age_ns = tick.max_observation_age_ns
        self._latency_timer.set_rate(settings.latency_rate_hz)
        self._diagnostics_timer.set_rate(settings.diagnostics_rate_hz)
        self._dialogue.reconfigure(settings.dialogue)
        self._memory.parameters(read_all(self._node))

    # Events.

    def _on_target(self, decision: Decision, lateness_ns: int) -> None:
        assert self.targets is not None  # or no tick runs in this process
        self.targets.publish(decision, lateness_ns)

    def drain(self) -> None:
        """Publish and hand on what the engine produced since the last call."""
        self._tick_watch.drain()
        text = []
        for event in self.runtime.drain():
            if isinstance(event, ActionChunk):
                self._chunks.publish(chunk_msg(event, self._joints))
                self._memory.chunk(event)
            else:
                text.append(event)
        self.requests.dispatch(text)
        self._dialogue.publish_feedback()
        if self.runtime.engine_thread.num_faults != self._num_faults_seen and self.runtime.faults:
            self._num_faults_seen = self.runtime.engine_thread.num_faults
            self._node.get_logger().error(
                f'engine failed ({self._num_faults_seen} in all):\n{self.runtime.faults[-1]}'
            )

    def _on_watch(self) -> None:
        if not self.is_active:
            return
        if self.runtime.engine_thread.failed:
            self.requests.fail_all('the engine has failed')
        self._memory.watch()

    def _on_latency(self) -> None:
        if self.is_active:
            self._latency.publish()

    def _on_instruction(self, instruction: str) -> None:
        problem = self.set_instruction(instruction, 'topic instruction')
        if problem:
            self._node.get_logger().warning(problem, throttle_duration_sec=5.0)

    def set_instruction(self, instruction: str, source: str) -> str:
        """Hand an instruction to the engine; return why it is refused, or nothing."""
        limit = self.settings.dialogue.max_prompt_bytes
        size = len(instruction.encode())
        if size > limit:
            return f'instruction: expected at most {limit} bytes, got {size}'
        self.runtime.set_instruction(instruction)
        self._memory.instruction(instruction, source)
        return ''
