# SPDX-License-Identifier: Apache-2.0
"""A recording played in process on its own clock: the same settings give the same outputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..control import Arming, ChunkBuffer, ControlTick
from ..engine.engine import Engine, EngineEvent
from ..engine.model import VLAModel
from ..engine.scheduling.cost_model import TableCostModel
from ..runtime.runtime import TICK_LEAD_NS
from ..types import ActionChunk, SamplingParams, TaskType, TextDelta, TextResult
from .bag import Bag, BagError
from .bag_inputs import BagInputs, BagSensors
from .cost_table import COST_NS
from .layout import BagLayout
from .output_messages import (
    chunk_message,
    scene_message,
    schedule_message,
    target_message,
    text_message,
    utterance_message,
)
from .outputs import CHUNK, Output, ReplayResult, SCENE, SCHEDULE, TARGET, TEXT, UTTERANCE
from .scene_requests import SceneRequests
from .settings import ReplaySettings
from .world import Periodic, ReplayClock, World

TAIL_NS = 5_000_000_000  # after the end, for answers that are under way


class Replay:
    """One replay of a recording that has images; make it, `run` it once.

    Decoding of images and the tick take no time; units of work take what `COST_NS` says.

    :param model: the one that the settings name.
    :raises BagError: the recording is shorter than the start.
    :raises ValueError: the settings cannot be met by this model or recording.
    """

    def __init__(
        self, bag: Bag, layout: BagLayout, settings: ReplaySettings, model: VLAModel
    ) -> None:
        if settings.start_s > bag.duration_s:
            raise BagError(
                bag.path,
                f'more than {settings.start_s:g} s, where to start',
                f'{bag.duration_s:.1f} s',
            )
        robot = settings.robot
        if robot.num_threads:
            torch.set_num_threads(robot.num_threads)
        self.start_ns = bag.start_ns + round(settings.start_s * 1e9)
        self.settings = settings
        self._bag = bag
        self._layout = layout
        self._sinks: Sequence[Callable[[Output], None]] = ()
        self._result = ReplayResult(str(bag.path), self.start_ns)
        self._commands: deque[Callable[[], None]] = deque()
        self._num_requests = 0
        self.sensors = BagSensors(robot.sensors)
        tick = robot.tick
        self._buffer = ChunkBuffer(
            tick.num_joints, tick.period_ns, round(robot.blend_s * 1e9), deltas=tick.deltas
        )
        self._tick = ControlTick(tick, robot.limits, self._buffer, Arming())
        self._clock = ReplayClock(lambda now_ns: self._world.pass_to(now_ns))
        self.engine = Engine(
            model,
            robot.engine,
            self._clock,
            TableCostModel(COST_NS),
            self.sensors,
            self._emit,
            self._poll,
        )
        self.engine.action.epoch = self._buffer.reset()
        self.engine.action.align(tick.period_ns + TICK_LEAD_NS)
        self._scenes = SceneRequests(
            robot.memory, model, robot.engine.max_text_tokens, self._image_sizes
        )
        self.inputs = BagInputs(
            bag,
            layout,
            robot.joints,
            self.sensors,
            self.start_ns,
            robot.ingest,
            self._on_instruction,
            self._on_time_jump,
            self._on_resize,
        )
        self._world = self._make_world()

    @property
    def duration_s(self) -> float:
        """How much of the recording is played."""
        return self._world.end_ns * 1e-9

    def run(
        self,
        sinks: Sequence[Callable[[Output], None]] = (),
        progress: Callable[[float], None] = lambda seconds: None,
    ) -> ReplayResult:
        """Play to the end, wait for the answers that are under way, return all outputs.

        :param sinks: each takes each output as it leaves.
        :param progress: told now and then how much of the recording has been played (s).
        """
        self._sinks = sinks
        world, clock, result = self._world, self._clock, self._result
        self.inputs.put_earlier_instruction()
        world.pass_to(0)
        while clock.now_ns() <= world.end_ns:
            self._cycle()
            progress(min(clock.now_ns(), world.end_ns) * 1e-9)
        while self.engine.text.num_live and clock.now_ns() <= world.end_ns + TAIL_NS:
            self._cycle()
        self.engine.stop()
        self._emit_schedule()
        self.engine.check_integrity()
        result.summary, result.problems = self._bag.summary(), self.inputs.problems()
        result.num_read, result.num_lost = self._bag.num_messages, self._bag.num_lost
        result.damage = self._bag.damage
        return result

    def _cycle(self) -> None:
        """Run the engine once, or let time pass to whatever comes next."""
        clock, engine = self._clock, self.engine
        now_ns = clock.now_ns()
        num_before = self.sensors.newest_id
        if not engine.run_cycle(now_ns, engine.action.deadline_ns(now_ns)):
            now_ns = clock.now_ns()
            clock.advance_to(min(engine.action.deadline_ns(now_ns), self._world.next_ns))
        if self.sensors.newest_id != num_before:
            self._emit_schedule()

    # What happens beside the engine.

    def _make_world(self) -> World:
        settings, period_ns = self.settings, self.settings.robot.tick.period_ns
        end_ns = self._bag.end_ns - self.start_ns
        if settings.duration_s is not None:
            end_ns = min(end_ns, round(settings.duration_s * 1e9))
        for question in settings.questions:
            if question.time_s * 1e9 > end_ns:
                raise ValueError(
                    f'question: expected a time up to {end_ns * 1e-9:g} s, which is '
                    f'all that is played, got {question.time_s:g}'
                )
        scene_ns = round(settings.robot.memory.period_s * 1e9)
        once_ns = end_ns + 1  # longer than the replay
        questions = [
            Periodic(round(question.time_s * 1e9), once_ns, self._asker(question.text))
            for question in settings.questions
        ]
        messages = self._bag.messages(self._layout.topics.keys(), self.start_ns)
        return World(
            messages,
            self.start_ns,
            end_ns,
            self.inputs.put,
            [
                *questions,
                Periodic(scene_ns, scene_ns, self._on_scene_due),
                Periodic(period_ns, period_ns, self._on_tick),
            ],
        )

    def _on_tick(self, number: int, deadline_ns: int) -> None:
        decision = self._tick.decide(number, deadline_ns, self.sensors.newest_state())
        self._give(
            TARGET,
            target_message(decision, self.settings.robot.joints, self.start_ns),
            deadline_ns,
        )

    def _on_instruction(self, text: str) -> None:
        self._commands.append(lambda: self.engine.set_instruction(text))

    def _on_resize(self, camera: str) -> None:
        self._commands.append(self.engine.reset_observations)

    def _on_time_jump(self, camera: str) -> None:
        epoch = self._buffer.reset()
        self.sensors.clear()

        def command() -> None:
            self.engine.action.epoch = epoch
            self.engine.reset_observations()

        self._commands.append(command)

    def _asker(self, text: str) -> Callable[[int, int], None]:
        def happen(number: int, time_ns: int) -> None:
            self._commands.append(lambda: self._ask(text))

        return happen

    def _ask(self, text: str) -> None:
        self._num_requests += 1
        self.engine.submit_text(
            self._num_requests,
            TaskType.DIALOGUE,
            text,
            SamplingParams(
                max_tokens=self.settings.robot.dialogue.max_tokens, seed=self._num_requests
            ),
        )

    def _on_scene_due(self, number: int, time_ns: int) -> None:
        self._commands.append(self._ask_for_scene)

    def _ask_for_scene(self) -> None:
        if self._scenes.live_id is not None:
            return
        self._num_requests += 1
        sampling, constraint = self._scenes.begin(self._num_requests)
        self.engine.submit_text(
            self._num_requests, TaskType.SCENE_GRAPH, self._scenes.prompt, sampling, constraint
        )

    def _image_sizes(self) -> dict[str, tuple[int, int]]:
        frames = [self.sensors.frame(camera) for camera in self.sensors.config.cameras]
        return {
            frame.camera: (frame.image.shape[1], frame.image.shape[0])
            for frame in frames
            if frame is not None
        }

    def _poll(self) -> None:
        while self._commands:
            self._commands.popleft()()

    # Outputs.

    def _give(self, topic: str, message: Any, time_ns: int | None = None) -> None:
        time_ns = self._clock.now_ns() if time_ns is None else time_ns
        output = Output(self.start_ns + time_ns, topic, message)
        self._result.outputs.append(output)
        for sink in self._sinks:
            sink(output)

    def _emit(self, event: EngineEvent) -> None:
        if isinstance(event, ActionChunk):
            self._buffer.add(event)
            self._give(CHUNK, chunk_message(event, self.settings.robot.joints))
        elif not isinstance(event, TextDelta):
            self._give_text(event)

    def _give_text(self, result: TextResult) -> None:
        self._give(TEXT, text_message(result))
        if result.task is TaskType.SCENE_GRAPH:
            update = self._scenes.end(result)
            if update is not None:
                self._give(SCENE, scene_message(update))
        elif result.text.strip():
            self._give(UTTERANCE, utterance_message(result.text.strip()))

    def _emit_schedule(self) -> None:
        rows = self.engine.timeline.snapshot()
        self.engine.timeline.clear()
        if len(rows):
            self._give(SCHEDULE, schedule_message(self.sensors.newest_id, rows))
