# SPDX-License-Identifier: Apache-2.0
"""Merging by log-sum-exp: exact, associative, and unmoved by a side that saw nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
import torch

from oxygen_ros.engine.attention import merge_out
from oxygen_ros.engine.attention.kernels import (
    attend_cpu,
    attend_cuda_efficient,
    attend_cuda_flash,
    attend_matmul,
    segment_kernel,
)


def segments(lengths: list[int], seed: int, spread: float = 1.0, dtype=torch.float64):
    """Return each segment's (out, lse) for the same queries, and the answer over all keys."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, 2, sum(lengths), generator=generator, dtype=torch.float64) * spread
    values = torch.randn(sum(lengths), 8, generator=generator, dtype=torch.float64)
    parts = [
        (part.softmax(-1) @ value, part.logsumexp(-1))
        for part, value in zip(scores.split(lengths, -1), values.split(lengths), strict=True)
    ]
    whole = scores.softmax(-1) @ values, scores.logsumexp(-1)
    return [tuple(x.to(dtype) for x in part) for part in parts], tuple(x.to(dtype) for x in whole)


def merge(out_a, lse_a, out_b, lse_b):
    """Merge outputs and log-sum-exps, so that any number of segments can follow."""
    return merge_out(out_a, lse_a, out_b, lse_b), torch.logaddexp(lse_a, lse_b)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.integers(0, 2**16),
    st.sampled_from((0.1, 1.0, 30.0, 1000.0)),
)
def test_merging_is_exact_commutative_and_associative(lengths, seed, spread):
    (a, b, c), whole = segments(lengths, seed, spread)
    left = merge(*merge(*a, *b), *c)
    for other in (merge(*a, *merge(*b, *c)), merge(*merge(*c, *a), *b), whole):
        torch.testing.assert_close(left[0], other[0], rtol=0.0, atol=1e-12)
        torch.testing.assert_close(left[1], other[1], rtol=1e-14, atol=1e-12)


def test_float32_merge_holds_its_precision():
    (a, b), whole = segments([5, 7], 1, dtype=torch.float32)
    torch.testing.assert_close(merge(*a, *b)[0], whole[0], rtol=0.0, atol=5e-7)


def test_half_precision_outputs_are_merged_in_float32():
    (a, b), whole = segments([5, 7], 1, dtype=torch.float32)
    out = merge_out(a[0].bfloat16(), a[1], b[0].bfloat16(), b[1])
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), whole[0], rtol=0.0, atol=1e-2)


def test_a_side_without_keys_changes_no_bit_of_the_other():
    (a, _), _ = segments([5, 7], 2, dtype=torch.float32)
    nothing = torch.zeros_like(a[0]), torch.full_like(a[1], -torch.inf)
    for out, lse in (merge(*a, *nothing), merge(*nothing, *a)):
        assert torch.equal(out, a[0])
        assert torch.equal(lse, a[1])


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize('masked', [False, True])
def test_the_plain_kernel_equals_the_flash_kernel(dtype, masked):
    generator = torch.Generator().manual_seed(3)
    q, k, v = (
        torch.randn(2, rows, 3, 16, generator=generator).to(dtype).transpose(1, 2)
        for rows in (6, 21, 21)
    )
    mask = None
    if masked:
        mask = torch.zeros(2, 1, 6, 21, dtype=dtype)
        mask[0, :, :, 15:] = mask[1, :, 2:, 4:] = -torch.inf
    out, lse = attend_matmul(q, k, v, mask, 0.3)
    flash_out, flash_lse = attend_cpu(q, k, v, mask, 0.3)
    assert out.dtype == flash_out.dtype == dtype
    assert lse.dtype == flash_lse.dtype == torch.promote_types(dtype, torch.float32)
    tolerance = 2e-2 if dtype == torch.bfloat16 else 2e-6
    torch.testing.assert_close(out, flash_out, rtol=0.0, atol=tolerance)
    torch.testing.assert_close(lse, flash_lse, rtol=0.0, atol=tolerance)


def test_a_kernel_is_chosen_that_supports_the_store():
    assert segment_kernel(torch.device('cpu'), torch.float32, 32) is attend_cpu
    cuda = torch.device('cuda')
    assert segment_kernel(cuda, torch.float64, 32) is attend_matmul
    assert segment_kernel(cuda, torch.float32, 12) is attend_matmul
    assert segment_kernel(cuda, torch.bfloat16, 64) is attend_cuda_flash
    assert segment_kernel(cuda, torch.float32, 64) is attend_cuda_efficient
