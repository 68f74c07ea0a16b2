# SPDX-License-Identifier: Apache-2.0
"""Scene-graph requests of a replay: their grammar, their texts merged into one graph."""

from __future__ import annotations

from collections.abc import Callable

from ..engine.model import VLAModel
from ..memory.scene.scene_grammar import SceneGrammar
from ..memory.scene.scene_graph import SceneGraph
from ..memory.scene.scene_text import ImageSizes, parse_scene
from ..memory.scene.token_constraint import ConstrainedVocabulary, TokenConstraint
from ..robot.memory_settings import MemorySettings
from ..types import FinishReason, SamplingParams, SceneUpdate, TextResult


class SceneRequests:
    """One request in each period, as the node makes them in the background.

    :param sizes: returns width and height of each camera's newest image (px).
    :raises ValueError: the longest scene graph does not fit into `max_tokens`.
    """

    def __init__(
        self,
        settings: MemorySettings,
        model: VLAModel,
        max_tokens: int,
        sizes: Callable[[], ImageSizes],
    ) -> None:
        token_bytes = [model.detokenize([token]) or None for token in range(model.spec.vocab_size)]
        vocabulary = ConstrainedVocabulary(
            token_bytes, model.spec.eos_token_ids[0], model.spec.vocab_size
        )
        room = max_tokens - len(model.text_prompt(settings.prompt))
        self._grammar = SceneGrammar(settings.scene_format, vocabulary, room)
        self._graph = SceneGraph(settings.scene_format.vocabulary, settings.rules)
        self._settings = settings
        self._sizes = sizes
        self.live_id: int | None = None  # a request that is under way; no other is made meanwhile

    @property
    def prompt(self) -> str:
        """What the model is asked."""
        return self._settings.prompt

    def begin(self, request_id: int) -> tuple[SamplingParams, TokenConstraint]:
        """Return how the text of a new request is decoded."""
        self.live_id = request_id
        return SamplingParams(max_tokens=self._grammar.max_tokens), self._grammar.constraint()

    def end(self, result: TextResult) -> SceneUpdate | None:
        """Return the graph after a request has ended; None: nothing could be read of it."""
        self.live_id = None
        if result.finish_reason is not FinishReason.STOP or result.provenance is None:
            return None
        scene = parse_scene(result.text, self._settings.scene_format, self._sizes())
        return self._graph.update(scene, result.provenance, result.provenance.stamp_ns)
