# SPDX-License-Identifier: Apache-2.0
"""The benchmark's client: keeps a number of dialogues going and records ticks and first tokens.

One run at a stretch, with a bag of what the node published if wanted; or in blocks of time with
and without watching, in turn, which shows what watching costs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from std_msgs.msg import Int64MultiArray, String

from oxygen_ros.action import Dialogue
from oxygen_ros.msg import ActionChunk, LatencyReport, SceneGraph, Target

from ...errors import OxygenError
from ...replay.recorder import OutputRecorder
from .node_driver import NodeDriver, run_driver

_SETTLE_S = 1.0  # after activation: the ramp, and the first chunk
_SWITCH_S = 1.5  # after watching begins or ends
_RATES_HZ = {'latency.rate_hz': 10.0, 'diagnostics.rate_hz': 1.0}  # while it is watched
# In the bag beside what the figures come from.
_RECORDED: tuple[tuple[str, Any], ...] = (
    ('oxygen/action_chunk', ActionChunk),
    ('oxygen/latency', LatencyReport),
    ('oxygen/timeline', Int64MultiArray),
    ('oxygen/utterance', String),
    ('/diagnostics', DiagnosticArray),
)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What the client does."""

    duration_s: float
    num_dialogues: int  # at one time
    max_tokens: int
    cameras: tuple[str, ...]


@dataclass(slots=True)
class LoadRun:
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


@dataclass(slots=True)
class Block:
    """What came in one block."""

    is_watched: bool
    lateness_ms: list[float]  # of each tick
    num_reports: int  # on ~/latency
    num_statuses: int  # on /diagnostics


def run_load(plan: LoadPlan, check: Callable[[], None], bag: Path | None = None) -> LoadRun:
    """Run the client to its end.

    :param bag: a folder that does not exist yet; it holds the messages that the figures come from,
        and more.
    """
    with ExitStack() as stack:
        recorder = None if bag is None else stack.enter_context(OutputRecorder(bag))
        return run_driver(lambda: LoadClient(plan, check, recorder), LoadClient.run)


def run_blocks(
    plan: LoadPlan,
    check: Callable[[], None],
    num_pairs: int,
    watch: Callable[[bool], None],
    done: Callable[[Block], None],
) -> LoadRun:
    """Run the client through blocks of time; return all that was recorded.

    :param plan: its duration is that of one block.
    :param num_pairs: blocks without and with watching.
    :param watch: begins and ends what watches beside the node.
    :param done: takes each block as it ends.
    """

    def run(client: LoadClient) -> LoadRun:
        return client.run_blocks(num_pairs, watch, done)

    return run_driver(lambda: LoadClient(plan, check), run)


class LoadClient(NodeDriver):
    """One thread: spins, and asks again as soon as an answer has ended."""

    def __init__(
        self, plan: LoadPlan, check: Callable[[], None], recorder: OutputRecorder | None = None
    ) -> None:
        super().__init__('oxygen_load', check, recorder)
        self._plan = plan
        self._run = LoadRun(plan.duration_s)
        self._live = 0
        self.listen('oxygen/target', Target, self._on_target)
        self.listen('oxygen/scene_graph', SceneGraph, self._on_scene_graph)
        if recorder is not None:
            for topic, kind in _RECORDED:
                self.listen(topic, kind)

    def run(self) -> LoadRun:
        """Bring the node up, load it, record, take it down."""
        self._begin()
        self._record()
        self.take_down()
        return self._run

    def run_blocks(
        self, num_pairs: int, watch: Callable[[bool], None], done: Callable[[Block], None]
    ) -> LoadRun:
        """Bring the node up, load it through all blocks, take it down."""
        set_parameters: Any = self.create_client(SetParameters, 'oxygen/set_parameters')
        topics = ('oxygen/latency', '/diagnostics')
        self.listen(topics[0], LatencyReport)
        self.listen(topics[1], DiagnosticArray)
        self._begin()
        for number in range(2 * num_pairs):
            is_watched = bool(number % 2)
            self._set_rates(set_parameters, is_watched)
            watch(is_watched)
            self._load_for(_SWITCH_S)
            num_ticks = len(self._run.lateness_ms)
            before = [self.counts[topic] for topic in topics]  # those of the switching
            self._record()
            done(
                Block(
                    is_watched,
                    self._run.lateness_ms[num_ticks:],
                    *(self.counts[topic] - count for topic, count in zip(topics, before)),
                )
            )
        self.take_down()
        return self._run

    def _begin(self) -> None:
        self.bring_up(self._plan.cameras)
        if self._plan.num_dialogues:
            self.wait(self._dialogue.server_is_ready, 'the dialogue action')
        self._load_for(_SETTLE_S)

    def _record(self) -> None:
        self._recording_now = True
        self._load_for(self._plan.duration_s)
        self._recording_now = False

    def _load_for(self, duration_s: float) -> None:
        """Keep the dialogues going for a while."""
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            while self._live < self._plan.num_dialogues:
                self._ask()
            self.take()

    def _ask(self) -> None:
        self._live += 1
        sent_ns = time.monotonic_ns()
        seen = 0  # tokens of this goal that were counted

        def on_feedback(feedback: Dialogue.Feedback) -> None:
            nonlocal seen
            if self._recording_now:
                if not seen:
                    self._run.ttft_ms.append((time.monotonic_ns() - sent_ns) * 1e-6)
                self._run.dialogue_tokens += feedback.num_tokens - seen
            seen = feedback.num_tokens

        def on_end(_: Any) -> None:
            self._live -= 1

        self.ask('What do you see?', on_feedback, on_end, self._plan.max_tokens)

    def _set_rates(self, client: Any, is_watched: bool) -> None:
        request = SetParameters.Request(
            parameters=[
                Parameter(
                    name=name,
                    value=ParameterValue(
                        type=ParameterType.PARAMETER_DOUBLE, double_value=is_watched * rate_hz
                    ),
                )
                for name, rate_hz in _RATES_HZ.items()
            ]
        )
        for result in self.call(client, request, 'set_parameters').results:
            if not result.successful:
                raise OxygenError(f'set_parameters: expected to be followed, got: {result.reason}')

    def _on_target(self, target: Target) -> None:
        if self._recording_now:
            self._run.ticks.append(target.tick)
            self._run.lateness_ms.append(target.lateness_s * 1e3)
            self._run.held.append(target.held)
            self._run.age_ms.append(target.observation_age_s * 1e3)

    def _on_scene_graph(self, graph: SceneGraph) -> None:
        del graph
        if self._recording_now:
            self._run.scene_graphs.append(time.monotonic())
