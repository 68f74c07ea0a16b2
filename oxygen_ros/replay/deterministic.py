# SPDX-License-Identifier: Apache-2.0
"""A recording played in process on its own clock: the same settings give the same outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..control import Decision, hold_reasons
from ..engine.model import VLAModel
from ..robot.dialogue import Listener, Question
from ..robot.faults import FaultLog, ListLogger
from ..robot.messages import (
    chunk_message,
    doubles,
    header_message,
    scene_message,
    target_fields,
    text_message,
    timeline_message,
)
from ..robot.shell import Outlets
from ..runtime.virtual_robot import VirtualRobot
from ..runtime.virtual_world import Event
from ..types import ActionChunk, SceneUpdate, TextResult
from .bag import Bag, BagError
from .bag_inputs import BagInputs
from .layout import BagLayout
from .output_types import make_message, STRING
from .outputs import CHUNK, Output, ReplayResult, SCENE, SCHEDULE, TARGET, TEXT, UTTERANCE
from .settings import ReplaySettings


class Replay(Outlets):
    """One replay of a recording that has images; make it, `run` it once.

    :param settings: that fit the model, as `load_model` returns them.
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
        self.start_ns = bag.start_ns + round(settings.start_s * 1e9)
        self.settings = settings
        self._bag = bag
        self._sinks: Sequence[Callable[[Output], None]] = ()
        self._result = ReplayResult(str(bag.path), self.start_ns)
        self._joints = settings.robot.joints
        self._end_ns = bag.end_ns - self.start_ns
        if settings.duration_s is not None:
            self._end_ns = min(self._end_ns, round(settings.duration_s * 1e9))
        for question in settings.questions:
            if question.time_s * 1e9 > self._end_ns:
                raise ValueError(
                    f'question: expected a time up to {self.duration_s:g} s, which is '
                    f'all that is played, got {question.time_s:g}'
                )
        self._log = ListLogger()
        self._virtual = VirtualRobot(
            settings.robot, model, self, self.start_ns, self._log, FaultLog(self._log)
        )
        self.robot = self._virtual.robot
        self.inputs = BagInputs(bag, layout, self.robot, self.start_ns)
        self._scheduled_id = 0  # observation up to which the schedule was given

    @property
    def duration_s(self) -> float:
        """How much of the recording is played."""
        return self._end_ns * 1e-9

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
        result = self._result

        def on_cycle(now_ns: int) -> None:
            if self.robot.sensors.num_observations != self._scheduled_id:
                self._give_schedule()
            progress(now_ns * 1e-9)

        self._virtual.run(
            self.inputs.events(),
            self.settings.parameters,
            end_ns=self._end_ns,
            at=[
                Event(round(question.time_s * 1e9), self._asker(question.text))
                for question in self.settings.questions
            ],
            on_cycle=on_cycle,
        )
        self._give_schedule()
        self._virtual.end(hold_reasons.DEACTIVATED)
        self.robot.close()
        result.summary = self._bag.summary()
        result.problems = [*self.inputs.problems(), *self._log.lines]
        result.num_read, result.num_lost = self._bag.num_messages, self._bag.num_lost
        result.damage = self._bag.damage
        return result

    def _asker(self, text: str) -> Callable[[], object]:
        listener = Listener(lambda answer: None)
        return lambda: self.robot.dialogue.ask(Question(text), listener)

    # Outputs, as the robot makes them.

    def _give(self, topic: str, message: Any, time_ns: int | None = None) -> None:
        time_ns = self._virtual.clock.now_ns() if time_ns is None else time_ns
        output = Output(self.start_ns + time_ns, topic, message)
        self._result.outputs.append(output)
        for sink in self._sinks:
            sink(output)

    def target(self, decision: Decision, lateness_ns: int, stamp_ns: int) -> None:
        """Give a Target."""
        message = make_message(
            'oxygen_ros/msg/Target',
            header=header_message(make_message, stamp_ns),
            joint_names=list(self._joints),
            positions=doubles(decision.target.values),
            **target_fields(decision, decision.armed, lateness_ns),
        )
        self._give(TARGET, message, decision.target.deadline_ns)

    def chunk(self, chunk: ActionChunk) -> None:
        """Give an ActionChunk."""
        self._give(CHUNK, chunk_message(make_message, chunk, self._joints))

    def text(self, result: TextResult) -> None:
        """Give a text result, of dialogue or scene graph."""
        self._give(TEXT, text_message(make_message, result))

    def utterance(self, sentence: str) -> None:
        """Give a sentence of an answer."""
        self._give(UTTERANCE, make_message(STRING, data=sentence))

    def scene(self, update: SceneUpdate, verdicts: Mapping[int, str]) -> None:
        """Give a SceneGraph."""
        self._give(SCENE, scene_message(make_message, update, verdicts))

    def _give_schedule(self) -> None:
        timeline = self.robot.engine.timeline
        rows = timeline.snapshot()
        timeline.clear()
        newest_id = self._scheduled_id = self.robot.sensors.num_observations
        if len(rows):
            self._give(SCHEDULE, timeline_message(make_message, rows, (newest_id,)))
