# SPDX-License-Identifier: Apache-2.0
"""What attention returns: both backends against dense softmax, and what must never matter."""

from dataclasses import replace
import math

from attention_cases import (
    Batch,
    BIDIRECTIONAL,
    CAUSAL,
    Heads,
    make_batch,
    PREFIX_ONLY,
    robot_batch,
    Task,
)
from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
import torch

from oxygen_ros.engine.attention import create_backend

BACKENDS = ('reference', 'sdpa')
TINY = Heads(4, 1, 32)
HEADS = (TINY, Heads(4, 2, 16), Heads(4, 4, 8), Heads(6, 3, 24), Heads(1, 1, 8))


@st.composite
def batches(draw) -> Batch:
    """Any tasks over any prefixes."""
    prefixes = draw(st.lists(st.integers(1, 40), max_size=3))
    tasks = []
    for _ in range(draw(st.integers(1, 5))):
        prefix = draw(st.sampled_from([None, *range(len(prefixes))]))
        masks = [BIDIRECTIONAL, CAUSAL] + ([PREFIX_ONLY] if prefix is not None else [])
        mask = draw(st.sampled_from(masks))
        num_own = 0 if mask is PREFIX_ONLY else draw(st.integers(0, 20))
        num_tokens = draw(st.sampled_from((1, 1, 1, 2, 3, 7, 17)))
        tasks.append(Task(num_tokens, mask, num_own, prefix, draw(st.booleans())))
    return make_batch(
        draw(st.sampled_from(HEADS)),
        tasks,
        prefixes,
        draw(st.sampled_from((1, 2, 4, 16))),
        draw(st.integers(0, 2**16)),
    )


def run(name: str, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    backend = create_backend(name, batch.kv, batch.heads.num_heads)
    return backend.run(backend.plan(batch.spans), 0, batch.q, batch.k, batch.v)


def assert_close(actual: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(actual.double(), expected.double(), rtol=0.0, atol=tolerance)


@settings(max_examples=300, deadline=None)
@given(batches())
def test_both_backends_equal_dense_softmax_and_leave_the_same_store(batch):
    expected_out, expected_lse = batch.expected()
    before = batch.kv.clone()
    stores = []
    for name in BACKENDS:
        batch.kv = before.clone()
        out, lse = run(name, batch)
        assert_close(out, expected_out)
        assert_close(lse, expected_lse)
        stores.append(batch.kv)
    assert torch.equal(stores[0].view(torch.int32), stores[1].view(torch.int32))
    num_written = sum(span.num_tokens for span in batch.spans if span.mask is not PREFIX_ONLY)
    changed = (stores[1].view(torch.int32) != before.view(torch.int32)).any(-1).any(-1)
    assert changed.sum() == 2 * num_written  # once in K, once in V


@settings(max_examples=100, deadline=None)
@given(batches())
def test_a_ragged_batch_equals_each_span_alone(batch):
    before = batch.kv.clone()
    out, lse = run('sdpa', batch)
    for index, span in enumerate(batch.spans):
        rows = batch.rows(index)
        backend = create_backend('sdpa', before.clone(), batch.heads.num_heads)
        alone = backend.run(backend.plan([span]), 0, batch.q[rows], batch.k[rows], batch.v[rows])
        assert_close(out[rows], alone[0], 1e-6)
        assert_close(lse[rows], alone[1], 2e-6)


@pytest.mark.parametrize('heads', HEADS)
@pytest.mark.parametrize('name', BACKENDS)
def test_the_robots_ragged_batch_is_exact(name, heads):
    batch = robot_batch(heads=heads)
    out, lse = run(name, batch)
    expected_out, expected_lse = batch.expected()
    assert_close(out, expected_out)
    assert_close(lse, expected_lse)


@pytest.mark.parametrize('name', BACKENDS)
@pytest.mark.parametrize(
    ('dtype', 'tolerance', 'lse_tolerance'),
    [(torch.float64, 1e-12, 1e-12), (torch.bfloat16, 2e-2, 2e-3)],
)
def test_other_dtypes_are_exact_to_their_own_precision(name, dtype, tolerance, lse_tolerance):
    batch = robot_batch(dtype=dtype)
    out, lse = run(name, batch)
    expected_out, expected_lse = batch.expected()
    assert out.dtype == dtype
    assert lse.dtype == torch.promote_types(dtype, torch.float32)
    assert_close(out, expected_out, tolerance)
    assert_close(lse, expected_lse, lse_tolerance)


@pytest.mark.parametrize('heads', [Heads(4, 1, 32), Heads(4, 2, 8), Heads(4, 1, 24)])
@pytest.mark.parametrize(
    'task',
    [
        Task(17, BIDIRECTIONAL, num_own=24, prefix=0),
        Task(5, CAUSAL, num_own=11, prefix=0),
        Task(1, CAUSAL, num_own=45, prefix=0),
        Task(9, BIDIRECTIONAL),
        Task(3, PREFIX_ONLY, prefix=0),
    ],
    ids=['action', 'prompt', 'decode', 'build', 'read'],
)
def test_a_span_alone_is_bit_equal_wherever_its_blocks_lie_and_whatever_others_hold(task, heads):
    results = []
    for layout_seed, dead in enumerate((0.0, math.nan, math.inf, 1e30, -math.inf, math.nan)):
        # the last two have consecutive blocks, which are views: those too must not differ
        placed = Task(task.num_tokens, task.mask, task.num_own, task.prefix, layout_seed < 4)
        batch = make_batch(heads, [placed], [61], seed=5, layout_seed=layout_seed, dead=dead)
        results.append(run('sdpa', batch))
    for out, lse in results[1:]:
        assert torch.equal(out, results[0][0])
        assert torch.equal(lse, results[0][1])


@pytest.mark.parametrize('name', BACKENDS)
def test_a_request_gone_nan_harms_no_other(name):
    healthy, sick = robot_batch(), robot_batch()
    for part in (sick.q, sick.k, sick.v):
        part[sick.rows(2)] = math.nan
    rest = [row for index in (0, 1, 3, 4, 5) for row in range(40)[healthy.rows(index)]]
    out, lse = run(name, sick)
    expected_out, expected_lse = run(name, healthy)
    assert out[sick.rows(2)].isnan().all()
    assert torch.equal(out[rest], expected_out[rest])
    assert torch.equal(lse[rest], expected_lse[rest])


@pytest.mark.parametrize('name', BACKENDS)
def test_a_plan_serves_pass_after_pass_and_layer_after_layer(name):
    tasks = [
        Task(5, BIDIRECTIONAL, 2, 0, scattered=False),
        Task(1, CAUSAL, 4, 0),
        Task(1, CAUSAL, 6, 0),
    ]
    layers = [
        make_batch(TINY, tasks, [20], seed=3, num_layers=3, layer=layer) for layer in range(3)
    ]
    store = torch.stack([batch.kv[layer] for layer, batch in enumerate(layers)])
    backend = create_backend(name, store, TINY.num_heads)
    plan = backend.plan(layers[0].spans)
    expected = layers[0].expected()[0]
    for layer in (0, 1, 2, 0, 1):
        batch = layers[layer]
        assert_close(backend.run(plan, layer, batch.q, batch.k, batch.v)[0], expected)
        assert_close(backend.attend(plan, layer, batch.q, batch.k, batch.v), expected)
    again = make_batch(TINY, tasks, [20], seed=4, layout_seed=3)  # other values, same places
    store[1] = again.kv[0]
    assert again.spans == layers[0].spans
    assert_close(backend.attend(plan, 1, again.q, again.k, again.v), again.expected()[0])


def test_a_slot_may_hold_prefixes_of_any_length_one_after_another():
    block_size, task = 4, Task(2, CAUSAL, 1, 0)
    store = torch.full((1, 2, 40, block_size, 1, 32), math.nan)
    backend = create_backend('sdpa', store, TINY.num_heads)
    for length in (*range(1, 80), *range(80, 0, -1)):
        batch = make_batch(TINY, [task], [length], block_size, seed=length, layout_seed=0)
        (span,) = batch.spans
        rows = batch.kv.flatten(2, 3)[:, :, span.prefix_block * block_size :][:, :, :length]
        store.fill_(math.nan).flatten(2, 3)[:, :, 4 : 4 + length] = rows
        store[:, :, 30] = batch.kv[:, :, span.block_table[0]]
        span = replace(span, prefix_block=1, block_table=(30,))
        out = backend.attend(backend.plan([span]), 0, batch.q, batch.k, batch.v)
        assert_close(out, batch.expected()[0])


def test_inputs_may_be_strided_views_of_a_fused_projection():
    batch = robot_batch(heads=Heads(4, 2, 16))
    fused = torch.cat([part.flatten(1) for part in (batch.q, batch.k, batch.v)], 1)
    expected_out, _ = batch.expected()
    q, k, v = fused.split([64, 32, 32], 1)
    batch.q, batch.k, batch.v = (
        q.unflatten(1, (4, 16)),
        k.unflatten(1, (2, 16)),
        v.unflatten(1, (2, 16)),
    )
    assert not batch.q.is_contiguous()
    for name in BACKENDS:
        assert_close(run(name, batch)[0], expected_out)


@pytest.mark.parametrize('name', BACKENDS)
def test_scores_of_any_size_do_not_overflow(name):
    batch = make_batch(TINY, [Task(4, CAUSAL, 5, 0), Task(1, CAUSAL, 2, 0)], [30])
    batch.q *= 1e4
    out, lse = run(name, batch)
    assert out.isfinite().all()
    assert lse.isfinite().all()
    batch.q = batch.q.double()
    keys, _ = (part.double() for part in batch.dense[1])
    scores = torch.einsum('hd,kd->hk', batch.q[4], keys[:, 0]) / math.sqrt(32)
    torch.testing.assert_close(lse[4].double(), scores.logsumexp(1), rtol=1e-5, atol=0.0)
