# SPDX-License-Identifier: Apache-2.0
"""Norms, rotation, time embedding and strict weights, each against its formula."""

from __future__ import annotations

import math

import pytest
import torch

from oxygen_ros.models.flow_matching import euler_times, time_embedding
from oxygen_ros.models.layers import apply_rope, Modulation, RMSNorm, Rope
from oxygen_ros.models.weights import WeightReader, weights_checksum

CPU = torch.device('cpu')


def random(*shape: int) -> torch.Tensor:
    """Return seeded normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize('magnitude', [1e-4, 1.0, 1e4])
def test_rms_norm_equals_torch(magnitude: float) -> None:
    x, weight = random(5, 24) * magnitude, random(24)
    expected = torch.nn.functional.rms_norm(x, (24,), weight, 1e-6)
    torch.testing.assert_close(RMSNorm(24, 1e-6, CPU, weight)(x), expected)
    scale, shift = random(24), random(24)
    modulated = RMSNorm(24, 1e-6, CPU).modulated(x, Modulation(scale, shift, shift))
    plain = torch.nn.functional.rms_norm(x, (24,), None, 1e-6)
    torch.testing.assert_close(modulated, plain * scale + shift, rtol=1e-5, atol=1e-5)


def test_rope_rotates_each_pair_by_its_angle() -> None:
    x = random(3, 2, 8)
    rotated = apply_rope(x, Rope(8, 100, CPU).rows(torch.tensor([0, 7, 99])))
    assert torch.equal(rotated[0], x[0])
    for i in range(4):
        angle = 7 / 10_000.0 ** (i / 4)
        a, b = x[1, :, i], x[1, :, i + 4]
        torch.testing.assert_close(rotated[1, :, i], a * math.cos(angle) - b * math.sin(angle))
        torch.testing.assert_close(rotated[1, :, i + 4], b * math.cos(angle) + a * math.sin(angle))


def test_rope_scores_depend_on_distance_alone() -> None:
    rope, q, k = Rope(16, 300, CPU), random(1, 1, 16), random(1, 1, 16) + 1.0

    def score(query: int, key: int) -> float:
        rotated = [
            apply_rope(x, rope.rows(torch.tensor([position])))
            for x, position in ((q, query), (k, key))
        ]
        return float((rotated[0] * rotated[1]).sum())

    assert score(5, 2) == pytest.approx(score(203, 200), abs=1e-4)
    assert score(5, 2) != pytest.approx(score(5, 3), abs=1e-3)


def test_euler_times_start_at_noise_and_never_reach_data() -> None:
    assert euler_times(5).tolist() == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    with pytest.raises(ValueError, match='num_steps: expected at least 1, got 0'):
        euler_times(0)


def test_time_embedding_is_sines_then_cosines_of_log_spaced_periods() -> None:
    embedding = time_embedding(torch.tensor([0.3], dtype=torch.float64), 4)
    expected = [
        math.sin(2 * math.pi * 0.3 / 4e-3),
        math.sin(2 * math.pi * 0.3 / 4.0),
        math.cos(2 * math.pi * 0.3 / 4e-3),
        math.cos(2 * math.pi * 0.3 / 4.0),
    ]
    assert embedding[0].tolist() == pytest.approx(expected, abs=1e-7)


def test_all_misfits_are_listed_at_once() -> None:
    reader = WeightReader(
        {'a.x': torch.ones(2), 'a.y': torch.ones(3), 'extra': torch.ones(1)}, CPU, torch.float32
    )
    scope = reader.scope('a.')
    assert scope.take('x', 2).eq(1.0).all()
    scope.take('y', 2)
    scope.take('z', 4)
    with pytest.raises(
        ValueError,
        match=r'3 misfits: a.y: expected shape \[2\], got \[3\]; '
        r'missing a.z \[4\]; unexpected extra',
    ):
        reader.finish()


def test_checksum_sees_names_shapes_types_and_bits_but_not_order() -> None:
    x, y = torch.arange(6.0), torch.ones(1)
    base = weights_checksum({'x': x, 'y': y})
    assert weights_checksum({'y': y, 'x': x}) == base
    others = [
        {'x': x.view(2, 3), 'y': y},
        {'x': x, 'z': y},
        {'x': x.nextafter(y), 'y': y},
        {'x': x.view(torch.int32), 'y': y},
    ]
    assert len({base, *map(weights_checksum, others)}) == 5
