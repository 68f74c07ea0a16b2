# SPDX-License-Identifier: Apache-2.0
"""What is promised of results holds on a CUDA device too, and its results are those of a CPU."""

from functools import cache

from harness import FakeSensors, Harness
import numpy as np
import pytest
from test_guarantees import (
    chunk_key,
    equal_up_to_ties,
    Outcome,
    record_logits,
    run_with_arrivals,
    same_batch_run,
)
import torch

from benchmarks.random_model import DrawnWeights, random_model
from oxygen_ros.bench.kv import peak
from oxygen_ros.engine.config import KVConfig
from oxygen_ros.engine.kv.memory_report import reduction_limit
from oxygen_ros.engine.scheduling.work import UnitKind
from oxygen_ros.models.flow_vla import FlowVLA
from oxygen_ros.models.make_checkpoint import small_config
from oxygen_ros.models.paged_sequence import PagedSequence
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig
from oxygen_ros.models.vla_config import Family

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device'),
]

FAMILIES = ('pi05', 'pi0', 'smolvla')
WANTED = [1, 2, 4, 5]  # greedy requests


@cache
def tiny_on(device: str) -> TinyModel:
    return TinyModel(TinyConfig(num_cameras=2), device)


@pytest.mark.parametrize('seed', [1, 2])
def test_a_random_schedule_is_bit_identical_to_an_undisturbed_one(seed):
    plain, cut = (same_batch_run(cut_seed, tiny_on('cuda')) for cut_seed in (None, seed))
    for request_id in (1, 2, 3):
        assert plain.results[request_id].tokens == cut.results[request_id].tokens
        for row, expected in zip(cut.logits[request_id], plain.logits[request_id], strict=True):
            assert torch.equal(row, expected)
    units = [harness.engine.counters.units[UnitKind.DECODE] for harness in (plain, cut)]
    assert units[0] == units[1]
    by_input = {chunk_key(chunk): chunk.values for chunk in plain.chunks}
    common = [chunk for chunk in cut.chunks if chunk_key(chunk) in by_input]
    assert len(common) > 3
    assert all(np.array_equal(chunk.values, by_input[chunk_key(chunk)]) for chunk in common)


def test_deterministic_mode_is_bit_identical_under_arrivals_joins_and_cancels():
    together = run_with_arrivals(3, WANTED, model=tiny_on('cuda'))
    for request_id in WANTED:
        alone = run_with_arrivals(0, [request_id], model=tiny_on('cuda'))
        assert together.results[request_id].tokens == alone.results[request_id].tokens
        for row, expected in zip(
            together.logits[request_id], alone.logits[request_id], strict=True
        ):
            assert torch.equal(row, expected)


def test_preempted_text_is_recomputed_to_the_same_words():
    together = run_with_arrivals(
        5,
        WANTED,
        deterministic=False,
        max_text_tokens=64,
        model=tiny_on('cuda'),
        kv=KVConfig(block_size=4, num_text_blocks=24),
    )
    for request_id in WANTED:
        alone = run_with_arrivals(0, [request_id], deterministic=False, model=tiny_on('cuda'))
        equal_up_to_ties(Outcome(together, request_id), Outcome(alone, request_id))


def one_frame(device: str, sharing: str) -> Harness:
    """Three tasks on one frame."""
    harness = record_logits(
        Harness(
            tiny_on(device),
            FakeSensors(2, num_observations=1),
            deterministic=True,
            kv=KVConfig(sharing=sharing, max_live_prefixes=5),
        )
    )
    harness.run_until(lambda: harness.chunks)
    for request_id in (1, 2):
        harness.ask(f'question {request_id}', max_tokens=12, request_id=request_id)
    return harness.finish_text()


@pytest.mark.parametrize(('device', 'sharing'), [('cuda', 'isolated'), ('cpu', 'shared')])
def test_a_shared_prefix_gives_what_isolated_ones_and_a_cpu_give(device, sharing):
    ours, other = one_frame('cuda', 'shared'), one_frame(device, sharing)
    np.testing.assert_allclose(ours.chunks[0].values, other.chunks[0].values, atol=1e-4)
    for request_id in (1, 2):
        for harness in (ours, other):
            harness.logits[request_id] = [row.cpu() for row in harness.logits[request_id]]
        equal_up_to_ties(Outcome(ours, request_id), Outcome(other, request_id))


def test_sharing_saves_as_much_storage_as_on_a_cpu():
    found = {
        (device, sharing): peak(tiny_on(device), sharing)
        for device in ('cpu', 'cuda')
        for sharing in ('shared', 'isolated')
    }
    for sharing in ('shared', 'isolated'):
        assert found['cuda', sharing] == found['cpu', sharing]
    shared, private = found['cuda', 'shared']
    limit = reduction_limit(2 * 64, private)
    assert 0.9 * limit < 1.0 - shared / found['cuda', 'isolated'][0] <= limit


@cache
def small_on(family: str, device: str, dtype: torch.dtype) -> FlowVLA:
    """Return a small model of a family, with the same weights on every device."""
    config = small_config(Family(family), ('camera_0', 'camera_1', 'camera_2'), 7)
    weights = DrawnWeights(config, torch.device('cpu'), 0)
    return random_model(config, device, dtype, weights=weights)


def results_of(model: FlowVLA) -> dict[str, torch.Tensor]:
    """Return hidden states, first velocity, actions and logits of one sequence, on the CPU."""
    generator = torch.Generator().manual_seed(0)
    config = model.config
    sequence = PagedSequence(model, 'sdpa', model.spec.max_prefix_tokens, 64)
    px = config.vision.image_px
    images = [torch.rand(3, px, px, generator=generator) * 2 - 1 for _ in range(3)]
    hidden = sequence.prefill(images, torch.arange(5, 25))
    state = (
        torch.rand(1, config.padded_state_dim, generator=generator)
        if model.spec.action_head_tokens
        else None
    )
    velocity, action = sequence.act(torch.randn(model.noise_shape(), generator=generator), state)
    logits = torch.stack([sequence.step(token) for token in (7, 8, 9)])
    found = {'hidden': hidden, 'velocity': velocity, 'actions': action.actions, 'logits': logits}
    return {name: tensor.double().cpu() for name, tensor in found.items()}


@pytest.mark.parametrize('family', FAMILIES)
@pytest.mark.parametrize(('dtype', 'tolerance'), [(torch.float32, 1e-4), (torch.bfloat16, 5e-2)])
def test_every_family_gives_what_a_cpu_gives_in_float32(family, dtype, tolerance):
    expected = results_of(small_on(family, 'cpu', torch.float32))
    for name, ours in results_of(small_on(family, 'cuda', dtype)).items():
        error = (ours - expected[name]).norm() / expected[name].norm()
        assert error < tolerance, (name, float(error))
