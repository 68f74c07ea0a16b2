# SPDX-License-Identifier: Apache-2.0
"""Scene updates beside four dialogues and an action pass in each tick, on virtual time."""

from __future__ import annotations

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parents[1] / 'engine'))
from harness import FakeSensors, Harness, MS, PERIOD_NS, tiny

from oxygen_ros.memory.scene.scene_format import SceneFormat
from oxygen_ros.memory.scene.scene_grammar import SceneGrammar
from oxygen_ros.memory.scene.scene_text import parse_scene
from oxygen_ros.memory.scene.token_constraint import ConstrainedVocabulary
from oxygen_ros.types import FinishReason, TaskType

CAMERAS = ('camera_0', 'camera_1')
SCENE_PERIOD_NS = 2_000 * MS
DURATION_NS = 4_200 * MS
PROMPT = 'List the objects and their relations.'


def test_every_update_ends_within_its_period_and_no_action_is_late() -> None:
    model = tiny(len(CAMERAS))
    scene_format = SceneFormat(CAMERAS, 6, 4)
    tokens = [model.detokenize([token]) or None for token in range(model.spec.vocab_size)]
    grammar = SceneGrammar(
        scene_format,
        ConstrainedVocabulary(tokens, model.spec.eos_token_ids[0], model.spec.vocab_size),
        480,
    )
    harness = Harness(model, FakeSensors(len(CAMERAS)), place_queries=16, hash_inputs=True)
    harness.check_every = 50
    talks = [harness.ask('and then?', 64) for _ in range(4)]
    asked_ns: dict[int, int] = {}
    while (now_ns := harness.clock.now_ns()) < DURATION_NS:
        talks = [
            harness.ask('and then?', 64) if talk in harness.results else talk for talk in talks
        ]
        if now_ns >= len(asked_ns) * SCENE_PERIOD_NS and now_ns < 2 * SCENE_PERIOD_NS:
            asked_ns[
                harness.ask(
                    PROMPT,
                    grammar.max_tokens,
                    TaskType.SCENE_GRAPH,
                    temperature=1.0,
                    seed=len(asked_ns) + 1,
                    constraint=grammar.constraint(),
                )
            ] = now_ns
        harness.cycle()
    assert len(asked_ns) == 2
    num_objects = 0
    for request_id, start_ns in asked_ns.items():
        result = harness.results[request_id]
        assert result.finish_reason is FinishReason.STOP
        num_objects += len(parse_scene(result.text, scene_format).objects)
        assert result.place is not None
        assert result.ended_ns - start_ns < SCENE_PERIOD_NS
    assert num_objects > 2
    # A pass in each period from the first on, whatever else there was to do.
    chunks = harness.chunks
    assert len(chunks) >= (DURATION_NS - chunks[0].pass_started_ns) // PERIOD_NS
    assert (
        len([result for result in harness.results.values() if result.task is TaskType.DIALOGUE])
        > 8
    )
