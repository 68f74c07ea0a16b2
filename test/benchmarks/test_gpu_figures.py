# SPDX-License-Identifier: Apache-2.0
"""What the GPU benchmark measures is put together rightly; here on a CPU, with a small model."""

from __future__ import annotations

import pytest
import torch

from benchmarks.gpu_model import decode_steps, floors_ms, kv_memory, loaded, stages
from benchmarks.random_model import DrawnWeights, random_model
from benchmarks.unit_log import UnitLog
from oxygen_ros.engine.scheduling.work import UnitKey, UnitKind
from oxygen_ros.models.flow_vla import FlowVLA
from oxygen_ros.models.make_checkpoint import small_config
from oxygen_ros.models.presets import preset
from oxygen_ros.models.vla_config import Family


@pytest.fixture(scope='module')
def model() -> FlowVLA:
    config = small_config(Family.PI05, ('front', 'left'), 7)
    return random_model(config, 'cpu', torch.float32)


def test_units_are_summed_to_stages() -> None:
    log = UnitLog(num_layers=2)
    for kind, size, duration_ns in [
        (UnitKind.PREFILL, 50, 10),
        (UnitKind.DECODE, 3, 1),
        (UnitKind.WRITE_KV, 50, 4),
        (UnitKind.DECODE, 3, 2),
        (UnitKind.HEAD, 3, 5),
        (UnitKind.TEXT_PREFILL, 7, 100),
        (UnitKind.HEAD, 1, 100),
    ]:
        log.observe(UnitKey(kind, size), duration_ns)
    assert log.prefills_ns == [14]
    assert log.steps_ns == {3: [8]}
    assert log.units_ns[UnitKind.HEAD] == [5, 100]


def test_a_random_model_runs_whole_and_repeats(model: FlowVLA) -> None:
    found = stages(model, 4)
    assert found['vision']['n'] >= 6 and found['pass']['n'] == 3.0
    assert 0.0 < found['denoise']['p50'] < found['pass']['p50']
    assert found['prefix_tokens'] > 2 * model.spec.tokens_per_image
    steps = decode_steps(model, 8)
    assert all(steps[batch]['p50'] > 0.0 for batch in ('1', '4', '8'))
    memory = kv_memory(model)
    assert 0.0 < memory['reduction'] < 2.0 / 3.0
    weights = DrawnWeights(model.config, torch.device('cpu'), 0)
    assert torch.equal(weights['lm_head.weight'], weights['lm_head.weight'])


def test_a_load_reports_waits_and_rates(model: FlowVLA) -> None:
    found = loaded(model, 2.0)
    assert found['actions_per_s'] == pytest.approx(
        found['chunks_per_s'] * model.spec.action_horizon
    )
    assert found['wait']['n'] > 0.0 and found['text_tokens_per_s'] > 0.0


def test_floors_of_a_decode_step_are_its_weights_over_the_bandwidth() -> None:
    floors = floors_ms(preset('pi05'), 816, {'copy_gbs': 4000.0, 'gemm_tflops': 800.0})
    assert floors['parameters'] == pytest.approx(3.35e9, rel=0.01)
    language_bytes = 2.0 * (18 * 110e6 + 257_152 * 2048)  # language layers and output head
    assert floors['decode.1'] == pytest.approx(language_bytes / 4000e9 * 1e3, rel=0.02)
    assert floors['pass'] == pytest.approx(10 * floors['denoise'])
