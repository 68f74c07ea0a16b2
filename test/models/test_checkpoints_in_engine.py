# SPDX-License-Identifier: Apache-2.0
"""The families in a whole engine: one prefix, actions, dialogue and a scene graph."""

from __future__ import annotations

from functools import cache
from pathlib import Path
import sys

from checkpoints import CAMERAS, small_model
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / 'engine'))
from harness import FakeSensors, Harness, MS

from oxygen_ros.types import FinishReason, FloatArray, TaskType

FAMILIES = ('pi05', 'pi0', 'smolvla')


@cache
def _run(
    family: str, with_text: bool, with_adapter: bool = False, backend: str = 'sdpa'
) -> Harness:
    harness = Harness(
        small_model(family, with_adapter),
        FakeSensors(3, period_ns=200 * MS),
        attention_backend=backend,
        place_queries=8 if with_text else 0,
    )
    if with_text:
        harness.ask('what do you see?', max_tokens=8)
        harness.ask('objects:', max_tokens=12, task=TaskType.SCENE_GRAPH)
    return harness.run(40)


def _chunks(harness: Harness) -> dict[tuple[int, int], FloatArray]:
    """Return chunks by what they were made from."""
    return {
        (chunk.provenance.observation_id, chunk.provenance.state_stamp_ns): chunk.values
        for chunk in harness.chunks
    }


@pytest.mark.parametrize('family', FAMILIES)
def test_text_and_adapter_leave_actions_as_they_are(family: str) -> None:
    alone = _chunks(_run(family, False))
    others = [_run(family, True)]
    if family == 'pi05':
        others.append(_run(family, True, with_adapter=True))
    for other in map(_chunks, others):
        common = alone.keys() & other.keys()
        assert len(common) >= 2
        assert all(np.array_equal(alone[key], other[key]) for key in common)


@pytest.mark.parametrize('family', FAMILIES)
def test_all_tasks_share_one_encoding_of_each_image(family: str) -> None:
    harness = _run(family, True)
    assert {result.finish_reason for result in harness.results.values()} <= {
        FinishReason.LENGTH,
        FinishReason.STOP,
    }
    assert len(harness.results) == 2
    counters = harness.engine.counters
    assert counters.images_encoded == 3 * counters.observations_started
    assert all(chunk.values.shape == (16, 7) for chunk in harness.chunks)
    assert all(np.isfinite(chunk.values).all() for chunk in harness.chunks)
    assert harness.chunks[0].provenance.model_checksum == harness.model.checksum
    assert counters.dense_reads == 1 and harness.results[2].place.shape == (
        harness.model.spec.width,
    )


@pytest.mark.parametrize('family', FAMILIES)
def test_backends_agree_on_actions_and_words(family: str) -> None:
    sdpa, reference = (_run(family, True, backend=name) for name in ('sdpa', 'reference'))
    np.testing.assert_allclose(sdpa.chunks[0].values, reference.chunks[0].values, atol=1e-5)
    assert [result.tokens for result in sdpa.results.values()] == [
        result.tokens for result in reference.results.values()
    ]


def test_no_prefix_is_made_without_the_state_that_it_should_hold() -> None:
    sensors = FakeSensors(3, period_ns=200 * MS)
    state, sensors.state = sensors.state, lambda now_ns: None
    harness = Harness(small_model('pi05'), sensors).run(20)
    assert not harness.chunks and harness.engine.counters.observations_started == 0
    sensors.state = state
    assert harness.run(20).chunks


def test_the_adapter_changes_words() -> None:
    plain, adapted = (_run('pi05', True, with_adapter=on) for on in (False, True))
    assert any(plain.results[key].tokens != adapted.results[key].tokens for key in plain.results)
    assert plain.results.keys() == adapted.results.keys()


@pytest.mark.parametrize('family, per_pass', [('pi05', False), ('pi0', True), ('smolvla', True)])
def test_a_fresh_state_enters_passes_where_the_family_has_it(family: str, per_pass: bool) -> None:
    harness = _run(family, False)
    of_first = [
        chunk
        for chunk in harness.chunks
        if chunk.provenance.observation_id == harness.chunks[0].provenance.observation_id
    ]
    assert (len(of_first) > 1) is per_pass
    if per_pass:
        assert not np.array_equal(of_first[0].values, of_first[1].values)
    assert harness.model.config.cameras == CAMERAS
