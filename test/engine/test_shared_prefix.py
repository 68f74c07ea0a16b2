# SPDX-License-Identifier: Apache-2.0
"""One prefix, many readers: what they read is right, and is the same storage."""

from collections import Counter
import gc
import hashlib
from pathlib import Path
import sys

from harness import FakeSensors, Harness, MS, tiny
import numpy as np
import psutil
import pytest
import torch

from oxygen_ros.engine.config import KVConfig
from oxygen_ros.engine.keyed_random import keyed_noise
from oxygen_ros.engine.spec import PrefixScope
from oxygen_ros.types import TaskType

sys.path.append(str(Path(__file__).parents[1] / 'models'))
from reference_tiny import ReferenceTiny

SCOPES = (PrefixScope.OBSERVATION, PrefixScope.OBSERVATION_PROMPT)
INSTRUCTION = 'put the cup down'


def run_frame(scope=PrefixScope.OBSERVATION, num_kv_heads=1, patch=None, **config):
    """One observation, one action pass, a dialogue, a scene-graph request; logits recorded."""
    model = tiny(2, scope, num_kv_heads)
    sensors = FakeSensors(2, num_observations=1)
    sensors.patch = patch
    harness = Harness(model, sensors, **config)
    harness.engine.set_instruction(INSTRUCTION)
    harness.logits = {}
    take = harness.engine.text._take_tokens

    def record(requests, logits):
        for request, row in zip(requests, logits):
            harness.logits.setdefault(request.request_id, []).append(row.clone())
        take(requests, logits)

    harness.engine.text._take_tokens = record
    harness.run_until(lambda: harness.chunks)
    harness.ask('what do you see?', max_tokens=12, request_id=1)
    harness.ask('objects:', max_tokens=12, task=TaskType.SCENE_GRAPH, request_id=2)
    harness.finish_text()
    return harness


def reference_of(harness, scope, num_kv_heads):
    model = harness.model
    oracle = ReferenceTiny(model.config)
    observation = harness.sensors.make(1, 0)
    images = [model.preprocess(frame) for frame in observation.frames]
    return oracle, images, model.prefix_prompt(INSTRUCTION, None)


@pytest.mark.parametrize('num_kv_heads', [1, 2])
@pytest.mark.parametrize('scope', SCOPES)
@pytest.mark.parametrize('backend', ['sdpa', 'reference'])
@pytest.mark.parametrize('sharing', ['shared', 'isolated'])
def test_outputs_equal_a_cacheless_recompute(sharing, backend, scope, num_kv_heads):
    harness = run_frame(
        scope, num_kv_heads, attention_backend=backend, kv=KVConfig(sharing=sharing)
    )
    oracle, images, instruction = reference_of(harness, scope, num_kv_heads)
    model = harness.model
    for request_id, prompt in ((1, 'what do you see?'), (2, 'objects:')):
        tokens = harness.results[request_id].tokens
        seed = list(model.text_prompt(prompt))
        logits = oracle.text_logits(images, seed, tokens, instruction)[len(seed) - 1 : -1]
        ours = torch.stack(harness.logits[request_id])[: len(tokens)]
        assert (ours - logits).abs().max() < 1e-5
    chunk = harness.chunks[0]
    noise = keyed_noise(model.noise_shape(), 0, 1)
    own = list(model.action_prompt(INSTRUCTION)) or list(instruction)
    state = harness.sensors.state(chunk.start_steady_ns).positions
    assert chunk.provenance.observation_id == 1
    expected = oracle.chunk(oracle.actions(images, own, state.tolist(), noise), state.tolist())
    assert np.abs(chunk.values - expected.numpy()).max() < 1e-5


def test_shared_and_isolated_are_bit_equal():
    shared = run_frame(deterministic=True)
    isolated = run_frame(deterministic=True, kv=KVConfig(sharing='isolated'))
    assert np.array_equal(shared.chunks[0].values, isolated.chunks[0].values)
    for request_id in (1, 2):
        assert shared.results[request_id].tokens == isolated.results[request_id].tokens
        assert torch.equal(
            torch.stack(shared.logits[request_id]), torch.stack(isolated.logits[request_id])
        )


@pytest.mark.parametrize('scope', SCOPES)
def test_a_changed_image_patch_moves_all_three_heads(scope):
    plain, changed = run_frame(scope), run_frame(scope, patch=(1, 0))
    assert np.abs(plain.chunks[0].values - changed.chunks[0].values).max() > 1e-4
    for request_id in (1, 2):
        assert (plain.logits[request_id][0] - changed.logits[request_id][0]).abs().max() > 1e-2


def test_one_prefill_serves_three_tasks_and_isolated_caches_take_three():
    assert run_frame().engine.counters.prefills == 1
    isolated = run_frame(kv=KVConfig(sharing='isolated')).engine.counters
    assert isolated.prefills == 3
    assert isolated.images_encoded == 3 * 2


def test_each_image_is_encoded_once_per_observation():
    harness = Harness(sensors=FakeSensors(2, num_observations=5)).run(60)
    counters = harness.engine.counters
    assert counters.images_encoded == 2 * counters.observations_started


def test_a_camera_whose_image_has_not_changed_is_not_encoded_again():
    class HalfSpeed(FakeSensors):
        def make(self, observation_id, now_ns):
            fresh = super().make(observation_id, now_ns)
            old = super().make((observation_id + 1) // 2, now_ns)
            return type(fresh)(
                observation_id,
                fresh.stamp_ns,
                now_ns,
                (fresh.frames[0], old.frames[1]),
                fresh.state,
            )

    def chunks(reuse):
        harness = Harness(sensors=HalfSpeed(2, num_observations=6), reuse_vision=reuse).run(60)
        return harness, harness.engine.counters

    with_reuse, counted = chunks(True)
    without, all_encoded = chunks(False)
    assert (counted.images_encoded, counted.images_reused) == (6 + 3, 3)
    assert (all_encoded.images_encoded, all_encoded.images_reused) == (12, 0)
    for ours, theirs in zip(with_reuse.chunks, without.chunks, strict=True):
        assert np.array_equal(ours.values, theirs.values)


def test_a_second_reader_gets_the_same_storage_not_a_copy():
    harness = Harness(sensors=FakeSensors(2, num_observations=1))
    harness.run_until(lambda: harness.chunks)
    harness.ask(request_id=1)
    harness.ask(request_id=2, task=TaskType.SCENE_GRAPH)
    harness.cycle()
    manager = harness.engine.manager
    readers = [request.context.prefix for request in harness.engine.text.live()]
    readers.append(harness.engine.action.ready.context.prefix)
    assert len(readers) == 3
    pointers = {
        tuple(
            tensor.data_ptr()
            for layer in range(harness.model.spec.num_layers)
            for tensor in manager.cache.prefix_view(layer, prefix.first_block, prefix.num_tokens)
        )
        for prefix in readers
    }
    assert len(pointers) == 1


def test_the_prefix_is_the_same_after_every_reader_whatever_the_schedule():
    harness = Harness(sensors=FakeSensors(2, num_observations=1))
    harness.run_until(lambda: harness.chunks)
    prefix = harness.engine.action.ready.context.prefix

    def digest():
        state = hashlib.sha256()
        for layer in range(harness.model.spec.num_layers):
            for tensor in harness.engine.manager.cache.prefix_view(
                layer, prefix.first_block, prefix.num_tokens
            ):
                state.update(tensor.contiguous().numpy().tobytes())
        return state.hexdigest()

    before = digest()
    for request in range(6):
        harness.ask(f'question {request}', max_tokens=5 + request)
        harness.cycle()
        if request % 2:
            harness.engine.cancel_text(request)
        assert digest() == before
    harness.finish_text()
    assert digest() == before


def test_the_sdpa_path_copies_no_prefix():
    harness = run_frame()
    assert harness.engine.runner.backend.prefix_bytes_copied == 0
    assert run_frame(attention_backend='reference').engine.runner.backend.prefix_bytes_copied > 0


@pytest.mark.parametrize('num_chunks', [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_chunks_and_a_request_for_each_ten_grow_nothing(num_chunks):
    harness = Harness(sensors=FakeSensors(2, period_ns=500 * MS))
    harness.check_every = 50
    pointer = harness.engine.manager.cache.data.data_ptr()
    pages = set()
    counts = Counter()

    def run(num_cycles):
        for cycle in range(num_cycles):
            if cycle % 10 == 0:
                harness.ask(f'question {cycle % 50}', max_tokens=4)
            harness.cycle()
            ready = harness.engine.action.ready
            pages.add(ready.context.block_table if ready else ())
            counts.update(type(event).__name__ for event in harness.events)
            harness.events.clear()

    run(150)
    gc.collect()
    before = psutil.Process().memory_info().rss
    counts.clear()
    run(num_chunks + 50)
    harness.finish_text()
    gc.collect()
    growth = psutil.Process().memory_info().rss - before
    assert counts['ActionChunk'] >= num_chunks
    assert counts['TextResult'] >= num_chunks // 10
    assert harness.engine.manager.cache.data.data_ptr() == pointer
    assert len(pages - {()}) <= 3  # action pages go round, they do not grow
    assert growth < 1 << 20
    harness.engine.stop()
    pool = harness.engine.manager.pool
    assert pool.num_owned == pool.num_shared == 0
    assert pool.num_free == pool.num_blocks
