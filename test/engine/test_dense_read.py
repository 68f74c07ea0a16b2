# SPDX-License-Identifier: Apache-2.0
"""The dense read: what it yields, that it writes nothing, and that nobody else can tell."""

from harness import FakeSensors, Harness, MS
import numpy as np
import pytest
import torch

from oxygen_ros.engine.config import EngineConfig, KVConfig
from oxygen_ros.engine.scheduling.work import UnitKind
from oxygen_ros.engine.text.dense_read import DenseRead
from oxygen_ros.types import FinishReason, TaskType

LAYERS = 4
QUERIES = 16


class PlaceSensors(FakeSensors):
    """Four observations of one place, then four of another: the same patches under noise."""

    def image(self, observation_id, camera):
        patches = np.random.default_rng(100 * ((observation_id - 1) // 4) + camera)
        noise = np.random.default_rng(1000 * observation_id + camera)
        image = np.kron(patches.integers(0, 256, (7, 7, 3)), np.ones((16, 16, 1)))
        return np.clip(image + noise.normal(0.0, 12.0, image.shape), 0, 255).astype(np.uint8)


def run(place_queries, micro_slice_ns=None, **config):
    """One frame, an answer and a scene graph; every result but the place is compared."""
    harness = Harness(
        sensors=FakeSensors(2, num_observations=1),
        deterministic=True,
        place_queries=place_queries,
        **config,
    )
    if micro_slice_ns is not None:
        harness.engine.scheduler._micro_slice_ns = micro_slice_ns
    harness.run_until(lambda: harness.chunks)
    harness.ask('question', max_tokens=12, request_id=1)
    harness.ask('scene', max_tokens=12, request_id=2, task=TaskType.SCENE_GRAPH)
    return harness.finish_text().run(5)


def test_an_action_and_texts_are_bit_equal_with_and_without_it():
    without, read = run(0), run(QUERIES)
    assert without.results[2].place is None and read.results[2].place is not None
    assert read.results[1].place is None  # an answer reads no place
    for request_id in (1, 2):
        assert read.results[request_id].tokens == without.results[request_id].tokens
    values = {chunk.provenance.state_stamp_ns: chunk.values for chunk in without.chunks}
    shared = [chunk for chunk in read.chunks if chunk.provenance.state_stamp_ns in values]
    assert len(shared) > 3
    for chunk in shared:
        assert np.array_equal(chunk.values, values[chunk.provenance.state_stamp_ns])


@pytest.mark.parametrize('sharing', ['shared', 'isolated'])
def test_it_is_one_pass_that_writes_no_kv_and_takes_no_block(monkeypatch, sharing):
    harness = Harness(
        sensors=FakeSensors(2, num_observations=1),
        place_queries=QUERIES,
        kv=KVConfig(sharing=sharing),
    )
    cache, pool = harness.engine.manager.cache, harness.engine.manager.pool
    num_units, run_unit = [], DenseRead.run_unit

    def watched(read):
        before, blocks = cache.data.clone(), pool.num_available_text
        run_unit(read)
        assert torch.equal(cache.data, before) and pool.num_available_text == blocks
        num_units.append(1)

    monkeypatch.setattr(DenseRead, 'run_unit', watched)
    harness.run_until(lambda: harness.chunks)
    request_id = harness.ask('scene', max_tokens=4, task=TaskType.SCENE_GRAPH)
    harness.finish_text()
    counters = harness.engine.counters
    assert len(num_units) == counters.units[UnitKind.DENSE_READ] == LAYERS
    assert counters.dense_reads == 1
    assert counters.units[UnitKind.TEXT_PREFILL] == LAYERS  # the seed's alone
    place = harness.results[request_id].place
    assert place.shape == (harness.model.spec.width,) and place.dtype == np.float32
    assert np.linalg.norm(place) == pytest.approx(1.0, abs=1e-5)


def test_a_read_that_is_cut_into_slices_gives_the_same_place():
    whole, cut = run(QUERIES, 100 * MS), run(QUERIES, 1)
    assert cut.engine.scheduler.num_slices > whole.engine.scheduler.num_slices
    assert np.array_equal(whole.results[2].place, cut.results[2].place)


def test_a_request_that_is_cancelled_within_its_read_leaves_nothing():
    harness = Harness(sensors=FakeSensors(2, num_observations=1), place_queries=QUERIES)
    harness.engine.scheduler._micro_slice_ns = 1
    harness.run_until(lambda: harness.chunks)
    harness.ask('scene', task=TaskType.SCENE_GRAPH, request_id=1)
    units = harness.engine.counters.units

    def cancel_within():
        if 0 < units[UnitKind.DENSE_READ] < LAYERS:
            harness.engine.cancel_text(1)

    harness.on_poll = cancel_within
    harness.finish_text().run(3)
    assert units[UnitKind.DENSE_READ] < LAYERS
    result = harness.results[1]
    assert result.finish_reason is FinishReason.CANCELLED and result.place is None
    assert not harness.engine.text._reads


def test_the_same_place_is_nearer_than_any_other():
    harness = Harness(sensors=PlaceSensors(2), place_queries=QUERIES)
    places = {}
    for number in range(1, 13):
        harness.run_until(lambda number=number: harness.sensors.given >= number)
        harness.ask('scene', max_tokens=1, task=TaskType.SCENE_GRAPH)
        harness.finish_text()
    for result in harness.results.values():
        places[result.provenance.observation_id] = result.place
    assert len(places) > 8
    for number, place in places.items():
        others = {
            other: float(place @ vector) for other, vector in places.items() if other != number
        }
        nearest = max(others, key=others.get)
        assert (nearest - 1) // 4 == (number - 1) // 4, (number, others)


def test_more_queries_than_a_text_may_have_tokens_are_refused():
    with pytest.raises(
        ValueError, match='memory.place_queries: expected at most engine.max_text_tokens'
    ):
        EngineConfig(place_queries=17, max_text_tokens=16)
