# SPDX-License-Identifier: Apache-2.0
"""The benchmark's client: keeps a number of dialogues going and records every tick and first
token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
import time
from typing import Any

import rclpy

from oxygen_ros.action import Dialogue
from oxygen_ros.msg import SceneGraph, Target

from .node_driver import NodeDriver, run_driver

_SETTLE_S = 1.0  # after activation: the ramp, and the first chunk


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What the client does."""

    duration_s: float
    num_dialogues: int  # at one time
    max_tokens: int
    cameras: tuple[str, ...]


@dataclass(slots=True)
class LoadRecording:
    """What the client saw in `duration_s`, the first second after activation left out."""

    duration_s: float
    ticks: list[int] = field(default_factory=list)  # numbers of the published ones
    lateness_ms: list[float] = field(default_factory=list)  # of each published tick
    held: list[bool] = field(default_factory=list)
    age_ms: list[float] = field(
        default_factory=list
    )  # of the observation behind it; below 0: none
    ttft_ms: list[float] = field(default_factory=list)  # goal sent to first feedback
    dialogue_tokens: int = 0
    scene_graphs: list[float] = field(default_factory=list)  # when each update came (s)


def run_load(plan: LoadPlan, check: Callable[[], None]) -> LoadRecording:
    """Run the client to its end."""
    return run_driver(lambda: LoadClient(plan, check), LoadClient.run)


class LoadClient(NodeDriver):
    """One thread: spins, and asks again as soon as an answer has ended."""

    def __init__(self, plan: LoadPlan, check: Callable[[], None]) -> None:
        super().__init__('oxygen_load', check)
        self._plan = plan
        self._recording = LoadRecording(plan.duration_s)
        self._live = 0
        self._recording_now = False
        self.create_subscription(Target, 'oxygen/target', self._on_target, 100)
        self.create_subscription(SceneGraph, 'oxygen/scene_graph', self._on_scene_graph, 10)

    def run(self) -> LoadRecording:
        """Bring the node up, load it, record, take it down."""
        self.begin()
        self.load_for(_SETTLE_S)
        self._recording_now = True
        self.load_for(self._plan.duration_s)
        self._recording_now = False
        self.take_down()
        return self._recording

    def begin(self) -> None:
        """Bring the node up."""
        self.bring_up(self._plan.cameras)
        if self._plan.num_dialogues:
            self.wait(self._dialogue.server_is_ready, 'the dialogue action')

    def load_for(self, duration_s: float) -> None:
        """Keep the dialogues going for a while."""
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            self._check()
            while self._live < self._plan.num_dialogues:
                self._ask()
            rclpy.spin_once(self, timeout_sec=0.05)

    def _ask(self) -> None:
        self._live += 1
        sent_ns = time.monotonic_ns()
        seen = [0]  # tokens of this goal that were counted

        def feedback(message: Any) -> None:
            num_tokens = message.feedback.num_tokens
            if self._recording_now:
                if not seen[0]:
                    self._recording.ttft_ms.append((time.monotonic_ns() - sent_ns) * 1e-6)
                self._recording.dialogue_tokens += num_tokens - seen[0]
            seen[0] = num_tokens

        def ended(_: Any) -> None:
            self._live -= 1

        def response(future: Any) -> None:
            handle = future.result()
            if handle.accepted:
                handle.get_result_async().add_done_callback(ended)
            else:
                self._live -= 1

        goal = Dialogue.Goal(prompt='What do you see?', max_tokens=self._plan.max_tokens)
        self._dialogue.send_goal_async(goal, feedback_callback=feedback).add_done_callback(
            response
        )

    def _on_target(self, target: Target) -> None:
        if self._recording_now:
            self._recording.ticks.append(target.tick)
            self._recording.lateness_ms.append(target.lateness_s * 1e3)
            self._recording.held.append(target.held)
            self._recording.age_ms.append(target.observation_age_s * 1e3)

    def _on_scene_graph(self, graph: SceneGraph) -> None:
        del graph
        if self._recording_now:
            self._recording.scene_graphs.append(time.monotonic())
