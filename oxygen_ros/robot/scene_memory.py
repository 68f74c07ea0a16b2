# SPDX-License-Identifier: Apache-2.0
"""The scene graph: updates in the background and on request, merged into one memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..engine.model import VLAModel
from ..memory.scene.scene_grammar import SceneGrammar
from ..memory.scene.scene_graph import SceneGraph
from ..memory.scene.scene_text import ImageSizes, parse_scene
from ..memory.scene.token_constraint import ConstrainedVocabulary
from ..types import FinishReason, SamplingParams, SceneUpdate, TaskType, TextResult
from .clock import RobotClock
from .dialogue import NOT_ACTIVE
from .faults import FaultLog
from .memory_settings import MemorySettings
from .positions import ScenePositions
from .records import RobotRecords
from .sensor_hub import SensorHub
from .text_requests import TextRequests

# A service that is called again and again must not fill the engine's queue.
_MAX_PENDING = 8

Listener = Callable[[SceneUpdate | None, str], None]
"""Takes the graph after an update, or None and why there is none."""


@dataclass(slots=True)
class SceneCounts:
    """What became of the updates since the node was made."""

    merged: int = 0
    failed: int = 0  # ended, but not with a scene graph
    unfinished: int = 0  # cancelled, or under way when the node was stopped
    skipped: int = 0  # the one before was not done yet
    newest_problem: str = ''
    # From request to publication, of the newest merged ones.
    durations_s: deque[float] = field(default_factory=lambda: deque(maxlen=1000))


def compile_grammar(settings: MemorySettings, model: VLAModel, max_tokens: int) -> SceneGrammar:
    """Compile the grammar of scene graphs for a model's tokens.

    :param max_tokens: of prompt and answer together.
    :raises ValueError: the longest scene graph does not fit.
    """
    token_bytes = [model.detokenize([token]) or None for token in range(model.spec.vocab_size)]
    vocabulary = ConstrainedVocabulary(
        token_bytes, model.spec.eos_token_ids[0], model.spec.vocab_size
    )
    room = max_tokens - len(model.text_prompt(settings.prompt))
    return SceneGrammar(settings.scene_format, vocabulary, room)


class SceneMemory:
    """Asks the engine for scene graphs and remembers them; belongs to the owner's thread.

    :param max_tokens: of a request's prompt and answer together.
    :param positions: where objects are in space; None: nobody asked for that.
    :param publish: takes each merged graph and what the facts say of its objects, by id.
    :raises ValueError: the longest scene graph does not fit into `max_tokens`.
    """

    def __init__(
        self,
        settings: MemorySettings,
        model: VLAModel,
        max_tokens: int,
        sensors: SensorHub,
        requests: TextRequests,
        records: RobotRecords,
        positions: ScenePositions | None,
        clock: RobotClock,
        faults: FaultLog,
        publish: Callable[[SceneUpdate, Mapping[int, str]], None],
    ) -> None:
        self.counts = SceneCounts()
        self.positions = positions
        self.verdicts: Mapping[int, str] = {}  # by object id
        self._settings = settings
        self._grammar = compile_grammar(settings, model, max_tokens)
        self._graph = SceneGraph(settings.scene_format.vocabulary, settings.rules)
        self._sensors = sensors
        self._requests = requests
        self._records = records
        self._clock = clock
        self._faults = faults
        self._publish = publish
        self._is_active = False
        self._num_asked = 0  # the seed of the newest request
        self._background_id: int | None = None

    def start(self) -> None:
        """Ask the engine from now on."""
        self._is_active = True
        self._background_id = None
        self._num_asked = 0

    def stop(self) -> None:
        """Ask no more; the engine ends what is under way."""
        self._is_active = False

    @property
    def current(self) -> SceneUpdate | None:
        """The graph as it is remembered; None: no update so far."""
        return self._graph.current() if self._graph.counts.num_updates else None

    @property
    def num_objects(self) -> int:
        """Objects remembered now."""
        return len(self._graph.current().objects)

    def update_in_background(self) -> None:
        """Ask for an update, unless the one before is still under way."""
        if not self._is_active:
            return
        if self._background_id is not None:
            self.counts.skipped += 1
            return
        self._background_id = self._ask(lambda update, problem: None)

    def update(self, listener: Listener) -> None:
        """Ask for an update; the listener hears of its outcome once."""
        if not self._is_active:
            listener(None, NOT_ACTIVE)
        elif self._requests.count(TaskType.SCENE_GRAPH) >= _MAX_PENDING:
            listener(None, f'expected at most {_MAX_PENDING} updates at once, got one more')
        else:
            self._ask(listener)

    def _ask(self, listener: Listener) -> int:
        self._num_asked += 1
        asked_ns = self._clock.now_ns()
        return self._requests.submit(
            TaskType.SCENE_GRAPH,
            self._settings.prompt,
            SamplingParams(
                self._grammar.max_tokens, self._settings.temperature, seed=self._num_asked
            ),
            on_result=lambda result: self._on_result(result, asked_ns, listener),
            constraint=self._grammar.constraint(),
        )

    def _on_result(self, result: TextResult, asked_ns: int, listener: Listener) -> None:
        if result.request_id == self._background_id:
            self._background_id = None
        try:
            update, problem = self._merge(result)
        except Exception as error:  # noqa: B902, BLE001 whoever waits must hear of it
            self._faults.note('scene graph', error)
            update, problem = None, f'{type(error).__name__}: {error}'
        cancelled = result.finish_reason in (FinishReason.CANCELLED, FinishReason.SUPERSEDED)
        if update is None and (cancelled or not self._is_active):
            self.counts.unfinished += 1
        elif update is None:
            self.counts.failed += 1
            self.counts.newest_problem = problem
        else:
            self.counts.durations_s.append((self._clock.now_ns() - asked_ns) * 1e-9)
        listener(update, problem)

    def _merge(self, result: TextResult) -> tuple[SceneUpdate | None, str]:
        if result.finish_reason is not FinishReason.STOP or result.provenance is None:
            return None, result.message or f'decoding ended by {result.finish_reason.value}'
        sizes = self._image_sizes()
        scene = parse_scene(result.text, self._settings.scene_format, sizes)
        if self.positions is not None:
            scene = self.positions.locate(scene, result.provenance, sizes)
        update = self._graph.update(scene, result.provenance, result.provenance.stamp_ns)
        self.counts.merged += 1
        # An update that came too late is not merged: its place is not that of the graph.
        place = result.place if update.provenance == result.provenance else None
        self.verdicts = self._records.scene(update, result.text, place)
        self._publish(update, self.verdicts)
        return update, ''

    def _image_sizes(self) -> ImageSizes:
        frames = [self._sensors.frame(camera) for camera in self._settings.scene_format.cameras]
        return {
            frame.camera: (frame.image.shape[1], frame.image.shape[0])
            for frame in frames
            if frame is not None
        }
