# SPDX-License-Identifier: Apache-2.0
"""The scene graph: updates in the background and on request, kept, published and served."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
import time
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from visualization_msgs.msg import MarkerArray

import oxygen_ros.msg as msg
import oxygen_ros.srv as srv

from ...engine.model import VLAModel
from ...memory.scene.scene_grammar import SceneGrammar
from ...memory.scene.scene_graph import SceneGraph
from ...memory.scene.scene_text import parse_scene
from ...memory.scene.token_constraint import ConstrainedVocabulary
from ...robot.memory_settings import MemorySettings
from ...runtime.runtime import Runtime
from ...types import FinishReason, SamplingParams, SceneUpdate, TaskType, TextResult
from ..conversions import scene_msg
from ..faults import FaultLog
from ..middleware.endpoints import make_publisher
from ..records.run_memory import RunMemory
from .engine_requests import EngineRequests
from .markers import scene_markers
from .scene_positions import ScenePositions

# A service that is called again and again must not fill the engine's queue.
_MAX_PENDING = 8
_NOT_ACTIVE = 'expected an active node, got one that is not'


def compile_grammar(settings: MemorySettings, model: VLAModel, max_tokens: int) -> SceneGrammar:
    """Compile the grammar of scene graphs for a model's tokens.

    :raises ValueError: the longest scene graph does not fit.
    """
    token_bytes = [model.detokenize([token]) or None for token in range(model.spec.vocab_size)]
    vocabulary = ConstrainedVocabulary(
        token_bytes, model.spec.eos_token_ids[0], model.spec.vocab_size
    )
    room = max_tokens - len(model.text_prompt(settings.prompt))
    return SceneGrammar(settings.scene_format, vocabulary, room)


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


class SceneGraphServer:
    """Asks the engine for scene graphs and remembers them.

    Everything here runs in the executor's thread. The services live as long as the node, because
    an answer may be on its way when the node is cleaned up.
    """

    def __init__(self, node: Node, faults: FaultLog) -> None:
        self.counts = SceneCounts()
        self._faults = faults
        self._requests: EngineRequests | None = None
        self._runtime: Runtime | None = None
        self._settings: MemorySettings | None = None
        self._grammar: SceneGrammar | None = None
        self._graph: SceneGraph | None = None
        self.memory: RunMemory | None = None  # while configured
        self.positions: ScenePositions | None = None  # while configured with a frame of them
        self._verdicts: dict[int, str] = {}  # by object id
        self._num_asked = 0  # the seed of the newest request
        self._background_id: int | None = None
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._publisher = make_publisher(node, msg.SceneGraph, '~/scene_graph', latched)
        self._markers = make_publisher(node, MarkerArray, '~/markers', latched)
        # Reentrant: a call waits for its update, and must not keep the others from running.
        node.create_service(
            srv.UpdateSceneGraph,
            '~/update_scene_graph',
            self._on_update,
            callback_group=ReentrantCallbackGroup(),
        )
        node.create_service(
            srv.GetSceneGraph,
            '~/get_scene_graph',
            faults.guard_service('get_scene_graph', self._on_get),
        )

    def configure(self, settings: MemorySettings, runtime: Runtime, max_tokens: int) -> None:
        """Compile the grammar and begin with an empty memory.

        :raises ValueError: the longest scene graph does not fit into max_tokens.
        """
        self._grammar = compile_grammar(settings, runtime.model, max_tokens)
        self._graph = SceneGraph(settings.scene_format.vocabulary, settings.rules)
        self._settings, self._runtime = settings, runtime
        self._verdicts = {}

    def cleanup(self) -> None:
        """Forget everything."""
        self._grammar = self._graph = self._settings = self._runtime = None
        if self.positions is not None:
            self.positions.destroy()
            self.positions = None

    def start(self, requests: EngineRequests) -> None:
        """Ask the engine from now on."""
        self._requests = requests
        self._background_id = None
        self._num_asked = 0

    def stop(self) -> None:
        """Ask no more; the engine ends what is under way."""
        self._requests = None

    @property
    def num_objects(self) -> int:
        """Objects remembered now."""
        return 0 if self._graph is None else len(self._graph.current().objects)

    def update_in_background(self) -> None:
        """Ask for an update, unless the one before is still under way."""
        requests = self._requests
        if requests is None:
            return
        if self._background_id is not None:
            self.counts.skipped += 1
            return
        self._background_id = self._ask(requests, Future())

    def _ask(self, requests: EngineRequests, done: Future[tuple[SceneUpdate | None, str]]) -> int:
        assert self._settings is not None and self._grammar is not None
        self._num_asked += 1
        asked_s = time.monotonic()
        return requests.submit(
            TaskType.SCENE_GRAPH,
            self._settings.prompt,
            SamplingParams(
                self._grammar.max_tokens, self._settings.temperature, seed=self._num_asked
            ),
            on_result=lambda result: self._on_result(result, asked_s, done),
            constraint=self._grammar.constraint(),
        )

    def _on_result(
        self, result: TextResult, asked_s: float, done: Future[tuple[SceneUpdate | None, str]]
    ) -> None:
        if result.request_id == self._background_id:
            self._background_id = None
        try:
            outcome = self._merge(result)
        except Exception as error:  # noqa: B902, BLE001 whoever waits must hear of it
            self._faults.note('scene graph', error)
            outcome = None, f'{type(error).__name__}: {error}'
        cancelled = result.finish_reason in (FinishReason.CANCELLED, FinishReason.SUPERSEDED)
        if outcome[0] is None and (cancelled or self._requests is None):
            self.counts.unfinished += 1
        elif outcome[0] is None:
            self.counts.failed += 1
            self.counts.newest_problem = outcome[1]
        else:
            self.counts.durations_s.append(time.monotonic() - asked_s)
        done.set_result(outcome)

    def _merge(self, result: TextResult) -> tuple[SceneUpdate | None, str]:
        graph, settings, runtime = self._graph, self._settings, self._runtime
        if result.finish_reason is not FinishReason.STOP or result.provenance is None:
            reason = result.message or f'decoding ended by {result.finish_reason.value}'
            return None, reason
        if graph is None or settings is None or runtime is None:
            return None, _NOT_ACTIVE
        sizes = {}
        for camera in settings.scene_format.cameras:
            frame = runtime.sensors.frame(camera)
            if frame is not None:
                sizes[camera] = (frame.image.shape[1], frame.image.shape[0])
        scene = parse_scene(result.text, settings.scene_format, sizes)
        if self.positions is not None:
            scene = self.positions.locate(scene, result.provenance, sizes)
        update = graph.update(scene, result.provenance, result.provenance.stamp_ns)
        self.counts.merged += 1
        if self.memory is not None:
            # An update that came too late is not merged: its place is not that of the graph.
            place = result.place if update.provenance == result.provenance else None
            self._verdicts = self.memory.scene(update, result.text, place)
        self._publisher.publish(scene_msg(update, self._verdicts))
        self._markers.publish(scene_markers(update))
        return update, ''

    # Services.

    async def _on_update(self, request: Any, response: Any) -> Any:
        del request
        response.success = False
        try:
            requests = self._requests
            if requests is None:
                response.message = _NOT_ACTIVE
            elif requests.count(TaskType.SCENE_GRAPH) >= _MAX_PENDING:
                response.message = f'expected at most {_MAX_PENDING} updates at once, got one more'
            else:
                done: Future[tuple[SceneUpdate | None, str]] = Future()
                self._ask(requests, done)
                outcome = await done
                assert outcome is not None
                update, response.message = outcome
                if update is not None:
                    response.success = True
                    response.graph = scene_msg(update, self._verdicts)
        except Exception as error:  # noqa: B902, BLE001 a service answers
            self._faults.note('update_scene_graph', error)
            response.message = f'{type(error).__name__}: {error}'
        return response

    def _on_get(self, request: Any, response: Any) -> Any:
        del request
        if self._graph is None or self._graph.counts.num_updates == 0:
            response.message = 'expected at least one update so far, got none'
            return response
        response.success = True
        response.graph = scene_msg(self._graph.current(), self._verdicts)
        return response
