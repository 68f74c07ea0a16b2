"""The demo's client: drives the node's lifecycle, asks, and records what comes; what a user's program would do."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import sys
import time
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_srvs.srv import SetBool

from oxygen_ros.action import Dialogue
from oxygen_ros.msg import ActionChunk, LatencyReport, Provenance, SceneGraph, Target
from oxygen_ros.srv import GetMemoryReport, UpdateSceneGraph
from ..demo.figures import Recording
from ..errors import OxygenError

_START_TIMEOUT_S = 90.0
_QUESTION_PERIOD_S = 4.0
_FIRST_QUESTION_S = 0.5


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """What the client does."""

    duration_s: float
    question: str
    cameras: tuple[str, ...]
    max_observation_age_s: float


def run_client(plan: DemoPlan, check: Callable[[], None]) -> Recording:
    """Run the client to its end; `check` raises when a child process has ended.

    :raises OxygenError: the node refused, did not answer in time, or no camera streamed.
    """
    rclpy.init(args=[])
    try:
        client = DemoClient(plan, check)
        try:
            return client.run()
        finally:
            client.destroy_node()
    except ExternalShutdownException as error:
        raise KeyboardInterrupt from error
    finally:
        rclpy.try_shutdown()


class DemoClient(Node):
    """Configures, arms and activates the node, then asks it things; one thread."""

    def __init__(self, plan: DemoPlan, check: Callable[[], None]) -> None:
        super().__init__('oxygen_demo')
        self._plan = plan
        self._check = check
        self._recording = Recording(plan.duration_s, plan.max_observation_age_s)
        self._question_ns = 0
        self._asking = False
        self._heard_first = False
        self._change_state = self.create_client(ChangeState, 'oxygen/change_state')
        self._enable = self.create_client(SetBool, 'oxygen/enable')
        self._update_scene_graph = self.create_client(UpdateSceneGraph, 'oxygen/update_scene_graph')
        self._get_memory_report = self.create_client(GetMemoryReport, 'oxygen/get_memory_report')
        self._dialogue = ActionClient(self, Dialogue, 'oxygen/dialogue')
        self.create_subscription(Target, 'oxygen/target', self._on_target, 100)
        self.create_subscription(ActionChunk, 'oxygen/action_chunk', self._on_chunk, 100)
        self.create_subscription(LatencyReport, 'oxygen/latency', self._on_latency, 10)
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(SceneGraph, 'oxygen/scene_graph', self._on_scene_graph, latched)
        self._report: LatencyReport | None = None
        self._answer = ''

    def run(self) -> Recording:
        """Run the whole demo."""
        self._say('waiting for the node')
        self._wait(self._change_state.service_is_ready, 'the node', _START_TIMEOUT_S)
        self._say('configuring: loading the model, allocating, warming up')
        self._transition(Transition.TRANSITION_CONFIGURE, 'configure')
        self._say('waiting for every camera')
        self._wait_for_cameras()
        self._call(self._enable, SetBool.Request(data=True), 'enable')
        self._transition(Transition.TRANSITION_ACTIVATE, 'activate')
        self._play()
        self._transition(Transition.TRANSITION_DEACTIVATE, 'deactivate')
        self._spin_for(0.5)  # what was published before the end is still on its way
        report = self._call(self._get_memory_report, GetMemoryReport.Request(), 'get_memory_report')
        self._recording.images_encoded = report.images_encoded
        self._recording.images_superseded = report.images_superseded
        return self._recording

    # The run.

    def _play(self) -> None:
        start_s = time.monotonic()
        next_question_s = start_s + _FIRST_QUESTION_S
        next_update_s = start_s + 0.3 * self._plan.duration_s
        next_line_s = start_s + 1.0
        while (now_s := time.monotonic()) < start_s + self._plan.duration_s + 0.1:
            self._check()
            if now_s >= next_question_s and not self._asking and self._dialogue.server_is_ready():
                self._ask()
                next_question_s = now_s + _QUESTION_PERIOD_S
            if now_s >= next_update_s and self._update_scene_graph.service_is_ready():
                self._update_scene_graph.call_async(UpdateSceneGraph.Request())
                next_update_s += 0.5 * self._plan.duration_s
            if now_s >= next_line_s:
                self._progress(now_s - start_s)
                next_line_s += 1.0
            rclpy.spin_once(self, timeout_sec=0.05)

    def _ask(self) -> None:
        self._asking = True
        self._heard_first = False
        self._question_ns = time.monotonic_ns()
        goal = Dialogue.Goal(prompt=self._plan.question)
        future = self._dialogue.send_goal_async(goal, feedback_callback=self._on_feedback)
        future.add_done_callback(self._on_goal_response)

    def _on_goal_response(self, future: Any) -> None:
        handle = future.result()
        if not handle.accepted:
            self._asking = False
            return
        handle.get_result_async().add_done_callback(self._on_result)

    def _on_feedback(self, message: Any) -> None:
        if not self._heard_first:
            self._heard_first = True
            self._recording.ttft_ms.append((time.monotonic_ns() - self._question_ns) * 1e-6)

    def _on_result(self, future: Any) -> None:
        self._asking = False
        result = future.result().result
        self._add_provenance(result.provenance)
        if result.finish_reason in ('stop', 'length'):
            self._recording.dialogue_results += 1
            self._answer = result.text

    # What comes.

    def _on_target(self, target: Target) -> None:
        stamp_ns = target.header.stamp.sec * 1_000_000_000 + target.header.stamp.nanosec
        self._recording.add_tick(stamp_ns, target.held, target.hold_reason, target.lateness_s,
                                 target.observation_age_s)

    def _on_chunk(self, chunk: ActionChunk) -> None:
        self._recording.chunks += 1
        self._recording.action_horizon = chunk.action_horizon
        self._add_provenance(chunk.provenance)

    def _on_scene_graph(self, graph: SceneGraph) -> None:
        self._recording.scene_graphs += 1
        self._add_provenance(graph.provenance)

    def _on_latency(self, report: LatencyReport) -> None:
        self._report = report
        if report.text_requests > 0:
            self._recording.tokens_per_s.append(report.tokens_per_s)
        self._recording.add_kv(report.kv_bytes_shared, report.kv_bytes_isolated)

    def _add_provenance(self, provenance: Provenance) -> None:
        if provenance.observation_id:
            stamps = [stamp.sec * 1_000_000_000 + stamp.nanosec for stamp in provenance.camera_stamps]
            self._recording.add_images(list(provenance.cameras), stamps)

    # Waiting.

    def _wait_for_cameras(self) -> None:
        """Wait until a publisher stands on every camera's topic and the node has seen an image of each."""
        def streaming() -> bool:
            return all(self.count_publishers(f'{camera}/image_raw')
                       + self.count_publishers(f'{camera}/image_raw/compressed') for camera in self._plan.cameras)
        self._wait(streaming, 'images of ' + ', '.join(self._plan.cameras), _START_TIMEOUT_S)

    def _transition(self, transition: int, name: str) -> None:
        request = ChangeState.Request(transition=Transition(id=transition))
        if not self._call(self._change_state, request, name).success:
            raise OxygenError(f'node: expected to {name}, it refused (its log says why)')

    def _call(self, client: Any, request: Any, name: str) -> Any:
        self._wait(client.service_is_ready, f'service {name}', _START_TIMEOUT_S)
        future = client.call_async(request)
        self._wait(future.done, f'an answer to {name}', _START_TIMEOUT_S)
        return future.result()

    def _wait(self, done: Callable[[], bool], what: str, timeout_s: float) -> None:
        end_s = time.monotonic() + timeout_s
        while not done():
            self._check()
            if time.monotonic() > end_s:
                raise OxygenError(f'demo: expected {what} within {timeout_s:.0f} s, got nothing')
            rclpy.spin_once(self, timeout_sec=0.05)

    def _spin_for(self, duration_s: float) -> None:
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            rclpy.spin_once(self, timeout_sec=0.05)

    # Progress.

    def _say(self, line: str) -> None:
        print(f'demo: {line}', file=sys.stderr, flush=True)

    def _progress(self, elapsed_s: float) -> None:
        recording = self._recording
        report = self._report
        sd_ms = report.jitter_sd_ms if report is not None else float('nan')
        answer = ' '.join(self._answer.split())[:40]
        self._say(f'{elapsed_s:5.0f} s  ticks {recording.ticks}  held {recording.held}  jitter sd {sd_ms:.2f} ms  '
                  f'chunks {recording.chunks}  answers {recording.dialogue_results}  '
                  f'scene graphs {recording.scene_graphs}  {answer!r}')
