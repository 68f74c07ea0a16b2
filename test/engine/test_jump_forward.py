# SPDX-License-Identifier: Apache-2.0
"""Tokens that a grammar forces cost no sampling and share a step; the text stays the same."""

from __future__ import annotations

import random

from harness import Harness, tiny
import pytest

pytest.importorskip('llguidance', reason='needs llguidance, which the grammars are run by')

from oxygen_ros.engine.config import KVConfig, SchedulerConfig
from oxygen_ros.memory.scene.scene_format import SceneFormat
from oxygen_ros.memory.scene.scene_grammar import SceneGrammar
from oxygen_ros.memory.scene.token_constraint import ConstrainedVocabulary
from oxygen_ros.types import FinishReason, TaskType

NUM_TOKENS = 320


@pytest.fixture(scope='module')
def grammar():
    model = tiny()
    token_bytes = [model.detokenize([token]) or None for token in range(model.spec.vocab_size)]
    vocabulary = ConstrainedVocabulary(
        token_bytes, model.spec.eos_token_ids[0], model.spec.vocab_size
    )
    return SceneGrammar(SceneFormat(('left', 'right'), 6, 4), vocabulary, NUM_TOKENS)


def scenes(grammar, num_scenes=6, between=lambda harness: None, **config):
    """Run scene graphs beside two dialogues to their end; return the harness."""
    harness = Harness(max_text_tokens=400, **config)
    harness.check_every = 20
    for seed in range(num_scenes):
        harness.ask(
            'scene',
            NUM_TOKENS,
            TaskType.SCENE_GRAPH,
            request_id=100 + seed,
            seed=seed,
            temperature=1.0,
            constraint=grammar.constraint(),
        )
    for seed in range(2):
        harness.ask('hello', 40, request_id=200 + seed, seed=seed, temperature=1.0)
    while harness.engine.text.num_live:
        harness.cycle()
        between(harness)
    return harness


def texts(harness):
    return {key: result.text for key, result in harness.results.items()}


def test_the_texts_are_those_of_one_token_a_step(grammar):
    jumping = scenes(grammar, deterministic=True)
    walking = scenes(grammar, deterministic=True, jump_forward=False)
    assert texts(jumping) == texts(walking)
    assert {result.finish_reason for key, result in jumping.results.items() if key < 200} == {
        FinishReason.STOP
    }
    counters, before = jumping.engine.counters, walking.engine.counters
    assert counters.text_tokens == before.text_tokens and before.forced_tokens == 0
    assert counters.forced_tokens > counters.text_tokens // 4
    # Each forced token is a row of somebody's step, and no step of its own.
    assert before.decode_steps - counters.decode_steps > counters.forced_tokens * 0.9
    assert counters.decode_rows <= before.decode_rows


@pytest.mark.parametrize('num_text_blocks', [256, 42])  # the second is too little for all
def test_batches_cuts_and_lost_blocks_leave_the_texts_as_they_are(grammar, num_text_blocks):
    expected = texts(scenes(grammar, deterministic=True))
    cut = scenes(
        grammar,
        scheduler=SchedulerConfig(micro_slice_s=1e-9),
        kv=KVConfig(num_text_blocks=num_text_blocks),
    )
    assert texts(cut) == expected
    assert (cut.engine.counters.tokens_recomputed > 0) == (num_text_blocks == 42)


def test_a_cancel_in_a_step_of_several_rows_leaves_the_others_as_they_are(grammar):
    expected = texts(scenes(grammar, deterministic=True))
    rng = random.Random(3)
    cancelled = set()

    def cancel(harness):
        live = [request for request in harness.engine.text.live() if request.request_id < 200]
        step = harness.engine.text._decode.step
        if len(cancelled) < 3 and step is not None and step.num_rows > len(step.requests):
            victim = rng.choice(live).request_id
            cancelled.add(victim)
            harness.engine.text.end(victim, FinishReason.CANCELLED)

    found = texts(scenes(grammar, between=cancel))
    assert len(cancelled) == 3
    assert all(found[key] == text for key, text in expected.items() if key not in cancelled)
    assert all(expected[key].startswith(found[key]) for key in cancelled)


def test_deltas_join_to_the_text(grammar):
    harness = scenes(grammar, num_scenes=2)
    for key, result in harness.results.items():
        deltas = [delta for delta in harness.deltas if delta.request_id == key]
        assert ''.join(delta.text for delta in deltas) == result.text
        assert deltas[-1].num_tokens == len(result.tokens)
