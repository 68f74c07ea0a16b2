# SPDX-License-Identifier: Apache-2.0
"""Sizes of the real models, whether they fit, and what a fleet costs."""

from __future__ import annotations

from dataclasses import replace

from checkpoints import small_folder, small_model
import pytest
import torch

from oxygen_ros.cli import main
from oxygen_ros.engine.config import KVConfig
from oxygen_ros.engine.kv.manager import KVCacheManager
from oxygen_ros.models.boards import Board, BOARDS
from oxygen_ros.models.fleet import ARTICLE_CLAIMS, FleetCost
from oxygen_ros.models.pi05 import Pi05Model
from oxygen_ros.models.plan import Plan, WeightKind, Workload
from oxygen_ros.models.presets import preset
from oxygen_ros.models.tensor_shapes import num_parameters, tensor_shapes


def test_pi05_at_real_size_on_the_meta_device() -> None:
    config = preset('pi05')
    tensors = {
        name: torch.empty(shape, device='meta')
        for name, shape in tensor_shapes(config, is_tied=True).items()
    }
    model = Pi05Model(config, tensors, '', torch.device('meta'), torch.bfloat16, 0.02)
    assert round(num_parameters(config) / 1e9, 3) == 3.353
    assert sum(tensor.numel() for tensor in tensors.values()) == num_parameters(config)
    assert model.spec.kv_bytes_per_token(2) == 18_432
    assert model.spec.max_prefix_tokens == 968
    hidden = torch.empty(968, 2048, device='meta', dtype=torch.bfloat16)
    positions = torch.empty(968, dtype=torch.int64, device='meta')
    attended = torch.empty(968, 2048, device='meta', dtype=torch.bfloat16)
    out = model.run_layer(0, hidden, positions, lambda layer, q, k, v: attended)
    assert out.shape == hidden.shape
    assert model.encode_image(
        torch.empty(3, 224, 224, device='meta', dtype=torch.bfloat16)
    ).shape == (256, 2048)


@pytest.mark.parametrize(
    'name, millions, kv_bytes, prefix',
    [
        ('pi05', 3353.4, 18_432, 968),
        ('pi0', 3238.0, 18_432, 816),
        ('smolvla', 450.0, 20_480, 240),
        ('mot-14b', 14_051.5, 57_344, 968),
    ],
)
def test_presets_have_the_published_sizes(
    name: str, millions: float, kv_bytes: int, prefix: int
) -> None:
    config = preset(name)
    spec = config.spec(0.02, ())
    assert num_parameters(config) / 1e6 == pytest.approx(millions, abs=0.05)
    assert spec.kv_bytes_per_token(2) == kv_bytes
    assert spec.max_prefix_tokens == prefix


def test_fourteen_billion_fit_into_32_gb_as_int8(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ['plan', '--preset', 'mot-14b', '--memory-gb', '32', '--weights']
    assert main([*arguments, 'int8']) == 0
    text = capsys.readouterr().out
    assert '\nfits\n' in text and ' sum ' in text and 'estimates' in text
    assert '625.0 hours' in text and '783.5 hours' in text
    assert main([*arguments, 'bf16']) == 1
    assert 'DOES NOT FIT' in capsys.readouterr().out


def test_the_sum_leaves_a_tenth_to_the_system() -> None:
    plan = Plan(
        preset('mot-14b'), Workload(), replace(BOARDS['orin'], memory_gb=32.0), WeightKind.INT8
    )
    memory = plan.memory
    assert memory.total == memory.weights + memory.kv_shared + memory.workspace
    assert memory.total <= 0.9 * 32e9 == memory.limit
    assert memory.kv_isolated > 2.5 * memory.kv_shared


def test_kv_memory_is_the_engines_own() -> None:
    model = small_model('pi05')
    workload = Workload(num_cameras=3, prompt_tokens=200, text_tokens=1024)
    plan = Plan(model.config, workload, BOARDS['orin'], WeightKind.FP32)
    config = KVConfig(num_text_blocks=2 * 1024 // KVConfig().block_size)
    manager = KVCacheManager(model.spec, config, torch.device('cpu'), torch.float32)
    assert plan.memory.kv_shared == manager.cache.data.nbytes


@pytest.mark.parametrize(
    'board, text_ms, denoise_ms',
    [('h200', 1.05, 0.13), ('rtx4090', 4.98, 0.64), ('thor', 18.4, 2.35), ('orin', 24.5, 3.13)],
)
def test_times_are_the_bandwidth_floors(board: str, text_ms: float, denoise_ms: float) -> None:
    times = Plan(preset('pi05'), Workload(prompt_tokens=200), BOARDS[board], WeightKind.BF16).times
    assert times.text_step * 1e3 == pytest.approx(text_ms, rel=0.01)
    assert times.denoise_step * 1e3 == pytest.approx(denoise_ms, rel=0.04)
    assert times.action_pass == pytest.approx(10 * times.denoise_step)


def test_arithmetic_bounds_a_prefill() -> None:
    times = Plan(
        preset('pi05'), Workload(prompt_tokens=200), Board('x', 64, 1e6, 1.0), WeightKind.BF16
    ).times
    assert times.prefill == pytest.approx(3.84 + 0.14, rel=0.01)
    assert times.vision == pytest.approx(0.63, rel=0.1)


@pytest.mark.parametrize('board, mode', [('h200', 'per_tick'), ('orin', 'chunked')])
def test_the_mode_follows_the_tick(board: str, mode: str) -> None:
    plan = Plan(preset('pi05'), Workload(), BOARDS[board], WeightKind.BF16)
    assert plan.times.mode(plan.workload, plan.config.action_horizon) == mode
    slow = Plan(preset('pi05'), Workload(), Board('slow', 64, 1, 1), WeightKind.BF16)
    assert slow.times.mode(slow.workload, 50) == 'too slow for its chunks'


def test_the_article_needs_further_cost() -> None:
    assert [round(claim.implied_hours, 1) for claim in ARTICLE_CLAIMS] == [625.0, 783.5]
    cost = FleetCost(1200.0, months=36.0, hours_per_day=24.0, power_w=0.0)
    assert cost.hours == pytest.approx(26_298)
    assert cost.usd_per_hour == pytest.approx(1200 / 26_298)
    assert ARTICLE_CLAIMS[0].missing_usd(cost) == pytest.approx(1.92 * 26_298 - 1200)


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--preset', 'pi05', '--memory-gb', '0'], 'memory_gb: expected above 0'),
        (['--preset', 'pi05', '--cameras', '0'], 'num_cameras: expected at least 1'),
        (['--preset', 'pi05', '--tick-hz', '0'], 'tick_hz: expected above 0'),
        (['--preset', 'pi05', '--hours-per-day', '25'], 'hours_per_day: expected above 0 to 24'),
        (['--checkpoint', '/nowhere'], 'checkpoint: expected a folder, got /nowhere'),
    ],
)
def test_a_wrong_argument_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['plan', *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_checkpoint_is_planned_by_its_own_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['plan', '--checkpoint', str(small_folder('smolvla')), '--weights', 'fp32']) == 0
    assert 'on orin' in capsys.readouterr().out
