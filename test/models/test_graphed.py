# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs change speed only: places and lengths are read from the device at each replay.

On a CPU a stand-in records passes: it calls the same function over the same tensors again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import sys
from unittest import mock

from checkpoints import small_model
import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / 'engine'))
from harness import FakeSensors, Harness, MS, tiny

from benchmarks.random_model import DrawnWeights, random_model
from oxygen_ros.engine.attention.static import FormBuffers
from oxygen_ros.models.compiled import CompiledModel
from oxygen_ros.models.graphed import GraphedModel
from oxygen_ros.models.make_checkpoint import small_config
from oxygen_ros.models.registry import create_model
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig
from oxygen_ros.models.vla_config import Family

on_a_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device'),
]
FAMILIES = ('tiny', 'pi05', 'pi0', 'smolvla')


class Repeating:
    """Stands in for CUDA graphs; counts."""

    def __init__(self) -> None:
        self.num_recorded = self.num_replayed = 0

    def __call__(self, function: Callable[[], object]) -> Callable[[], None]:
        function()
        self.num_recorded += 1

        def replay() -> None:
            self.num_replayed += 1
            with mock.patch.object(FormBuffers, 'load'):  # the host's part is not in a graph
                function()

        return replay


def run(model, is_static: bool = False) -> Harness:
    """Frames, dialogues of several lengths and a scene graph, that come and go."""
    if is_static:  # as a model of graphs asks for it; no parameter does
        model.attention_backend = 'static'
    harness = Harness(model, FakeSensors(model.spec.num_cameras, period_ns=100 * MS))
    if is_static:
        del model.attention_backend
    harness.engine.set_instruction('put it there')
    harness.check_every = 10
    logits = harness.logits = {}
    take = harness.engine.text._take_tokens

    def record(requests, rows):
        for request, row in zip(requests, rows):
            logits.setdefault(request.request_id, []).append(row.cpu())
        take(requests, rows)

    harness.engine.text._take_tokens = record
    for request_id, (start, length) in enumerate([(0, 70), (3, 9), (12, 20), (30, 14)], 1):
        harness.run(max(0, start - harness.num_cycles))
        harness.ask(f'question {request_id}', max_tokens=length, request_id=request_id)
    harness.finish_text()
    return harness


def assert_same(ours: Harness, others: Harness, atol: float) -> None:
    """Compare chunks, and logits up to the first token that differs."""
    assert len(ours.chunks) == len(others.chunks) > 5
    for ours_chunk, chunk in zip(ours.chunks, others.chunks):
        np.testing.assert_allclose(ours_chunk.values, chunk.values, atol=atol, rtol=0.0)
    for request_id, rows in ours.logits.items():
        tokens = ours.results[request_id].tokens, others.results[request_id].tokens
        same = next(
            (i for i, pair in enumerate(zip(*tokens)) if len(set(pair)) > 1), len(tokens[0])
        )
        assert same >= 2
        for row, expected in list(zip(rows, others.logits[request_id]))[: same + 1]:
            torch.testing.assert_close(row, expected, atol=atol, rtol=0.0)


def model_of(family: str, device: str = 'cpu', dtype: torch.dtype = torch.float32):
    """Return a small model with the same weights on every device."""
    if family == 'tiny':
        return TinyModel(TinyConfig(num_cameras=2), device, dtype)
    config = small_config(Family(family), ('camera_0', 'camera_1'), 7)
    weights = DrawnWeights(config, torch.device('cpu'), 0)
    return random_model(config, device, dtype, weights=weights)


@pytest.mark.parametrize(
    'family',
    ['tiny', *(pytest.param(name, marks=pytest.mark.slow) for name in ('smolvla', 'pi05', 'pi0'))],
)
def test_replayed_passes_give_what_eager_ones_give_whatever_comes_between(family):
    model = model_of(family)
    repeating = Repeating()
    replayed = run(GraphedModel(model, repeating))
    assert_same(replayed, run(model, is_static=True), atol=0.0)
    assert_same(replayed, run(model), atol=2e-4)
    assert repeating.num_replayed > 5 * repeating.num_recorded > 0


def test_shapes_alone_decide_what_is_recorded():
    repeating = Repeating()
    model = GraphedModel(tiny(), repeating)
    harness = Harness(model, FakeSensors(2, period_ns=40 * MS))
    harness.engine.set_instruction('put it there')
    harness.run(30)  # prefixes in one slot after another
    assert len({chunk.provenance.observation_id for chunk in harness.chunks}) > 5
    steps, layers = model.spec.num_denoising_steps, model.spec.num_layers - 1
    assert model.num_graphs == repeating.num_recorded == 1 + layers + steps


def test_where_capturing_fails_the_eager_passes_take_over_and_say_why(caplog):
    def broken(function):
        function()
        raise RuntimeError('no graphs here')

    model = GraphedModel(tiny(), broken)
    assert_same(run(model), run(tiny(), is_static=True), atol=0.0)
    assert 'no graphs here' in model.execution and model.num_graphs == 0
    assert len([record for record in caplog.records if record.name.startswith('oxygen')]) == 1


def test_without_a_cuda_device_it_is_the_eager_model_and_says_so():
    model = create_model('tiny', cuda_graphs=True, device='cpu')
    assert isinstance(model, GraphedModel)
    assert model.execution == 'eager, since CUDA graphs need a CUDA device, got cpu'
    assert (model.spec, model.checksum) == (
        create_model('tiny', device='cpu').spec,
        create_model('tiny', device='cpu').checksum,
    )
    harness = Harness(model, FakeSensors(3)).run(5)
    assert harness.engine.runner.backend.name == 'sdpa' and harness.chunks
    both = create_model('tiny', cuda_graphs=True, compile=True, device='cpu')
    assert both.execution.startswith('compiled, since CUDA graphs need')


def test_adapters_of_text_are_part_of_what_is_recorded():
    model = small_model('pi05', with_adapter=True)
    assert_same(run(GraphedModel(model, Repeating())), run(model, is_static=True), atol=0.0)


@pytest.mark.parametrize('family', [pytest.param(name, marks=on_a_gpu) for name in FAMILIES])
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_graphs_on_a_gpu_give_what_eager_passes_give_to_the_bit(family, dtype):
    model = model_of(family, 'cuda', dtype)
    graphed = GraphedModel(model)
    replayed = run(graphed)
    assert graphed.execution == 'cuda graphs' and graphed.num_graphs > 10
    assert_same(replayed, run(model, is_static=True), atol=0.0)
    if dtype == torch.float32:
        assert_same(replayed, run(model_of(family)), atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')
def test_compiled_passes_are_captured_too():
    model = GraphedModel(CompiledModel(model_of('tiny', 'cuda')))
    replayed = run(model)
    assert model.execution == 'cuda graphs of passes compiled'
    assert_same(replayed, run(model_of('tiny')), atol=1e-3)
