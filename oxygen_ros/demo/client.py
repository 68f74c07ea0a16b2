# SPDX-License-Identifier: Apache-2.0
"""The demo's client: drives the node's lifecycle, asks, and records what comes; what a user's
program would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import time
from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile

from oxygen_ros.action import Dialogue
from oxygen_ros.msg import ActionChunk, LatencyReport, Provenance, SceneGraph, Target
from oxygen_ros.srv import UpdateSceneGraph

from ..nodes.clients.node_driver import NodeDriver, run_driver
from .figures import DemoRun

_QUESTION_PERIOD_S = 4.0
_FIRST_QUESTION_S = 0.5


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """What the client does."""

    duration_s: float
    question: str
    cameras: tuple[str, ...]
    max_observation_age_s: float


def run_client(plan: DemoPlan, check: Callable[[], None]) -> DemoRun:
    """Run the client to its end; `check` raises when a child process has ended.

    :raises OxygenError: the node refused, did not answer in time, or no camera streamed.
    """
    return run_driver(lambda: DemoClient(plan, check), DemoClient.run)


class DemoClient(NodeDriver):
    """Brings the node up, then asks it things and records what comes; one thread."""

    def __init__(self, plan: DemoPlan, check: Callable[[], None]) -> None:
        super().__init__('oxygen_demo', check)
        self._plan = plan
        self._run = DemoRun(plan.duration_s, plan.max_observation_age_s)
        self._question_ns = 0
        self._asking = False
        self._heard_first = False
        self._report: LatencyReport | None = None
        self._answer = ''
        self._update_scene_graph: Any = self.create_client(
            UpdateSceneGraph, 'oxygen/update_scene_graph'
        )
        self.create_subscription(Target, 'oxygen/target', self._on_target, 100)
        self.create_subscription(ActionChunk, 'oxygen/action_chunk', self._on_chunk, 100)
        self.create_subscription(LatencyReport, 'oxygen/latency', self._on_latency, 10)
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(SceneGraph, 'oxygen/scene_graph', self._on_scene_graph, latched)

    def run(self) -> DemoRun:
        """Run the whole demo."""
        self.bring_up(self._plan.cameras)
        self._play()
        report = self.take_down()
        self._run.images_encoded = report.images_encoded
        self._run.images_superseded = report.images_superseded
        self._run.kv_bytes_shared = report.bytes_peak_shared
        self._run.kv_bytes_isolated = report.bytes_peak_isolated
        return self._run

    # The run.

    def _play(self) -> None:
        start_s = time.monotonic()
        next_question_s = start_s + _FIRST_QUESTION_S
        next_update_s = start_s + 0.3 * self._plan.duration_s
        next_line_s = start_s + 1.0
        while (now_s := time.monotonic()) < start_s + self._plan.duration_s + 0.1:
            if now_s >= next_question_s and not self._asking and self._dialogue.server_is_ready():
                self._ask()
                next_question_s = now_s + _QUESTION_PERIOD_S
            if now_s >= next_update_s and self._update_scene_graph.service_is_ready():
                self._update_scene_graph.call_async(UpdateSceneGraph.Request())
                next_update_s += 0.5 * self._plan.duration_s
            if now_s >= next_line_s:
                self._progress(now_s - start_s)
                next_line_s += 1.0
            self.take()

    def _ask(self) -> None:
        self._asking = True
        self._heard_first = False
        self._question_ns = time.monotonic_ns()
        self.ask(self._plan.question, self._on_feedback, self._on_end)

    def _on_feedback(self, feedback: Dialogue.Feedback) -> None:
        del feedback
        if not self._heard_first:
            self._heard_first = True
            self._run.ttft_ms.append((time.monotonic_ns() - self._question_ns) * 1e-6)

    def _on_end(self, result: Dialogue.Result | None) -> None:
        self._asking = False
        if result is None:
            return
        self._add_provenance(result.provenance)
        if result.finish_reason in ('stop', 'length'):
            self._run.dialogue_results += 1
            self._answer = result.text

    # What comes.

    def _on_target(self, target: Target) -> None:
        stamp_ns = target.header.stamp.sec * 1_000_000_000 + target.header.stamp.nanosec
        self._run.add_tick(
            target.tick,
            stamp_ns,
            target.held,
            target.hold_reason,
            target.lateness_s,
            target.observation_age_s,
        )

    def _on_chunk(self, chunk: ActionChunk) -> None:
        self._run.chunks += 1
        self._run.action_horizon = chunk.action_horizon
        self._add_provenance(chunk.provenance)

    def _on_scene_graph(self, graph: SceneGraph) -> None:
        self._run.scene_graphs += 1
        self._add_provenance(graph.provenance)

    def _on_latency(self, report: LatencyReport) -> None:
        self._report = report
        if report.text_requests > 0:
            self._run.tokens_per_s.append(report.tokens_per_s)

    def _add_provenance(self, provenance: Provenance) -> None:
        if provenance.observation_id:
            stamps = [
                stamp.sec * 1_000_000_000 + stamp.nanosec for stamp in provenance.camera_stamps
            ]
            self._run.add_images(list(provenance.cameras), stamps)

    # Progress.

    def _progress(self, elapsed_s: float) -> None:
        run = self._run
        report = self._report
        sd_ms = report.jitter_sd_ms if report is not None else float('nan')
        answer = ' '.join(self._answer.split())[:40]
        self.say(
            f'{elapsed_s:5.0f} s  ticks {run.ticks}  held {sum(run.held)}  '
            f'jitter sd {sd_ms:.2f} ms  chunks {run.chunks}  '
            f'answers {run.dialogue_results}  '
            f'scene graphs {run.scene_graphs}  {answer!r}'
        )
