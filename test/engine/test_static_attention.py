# SPDX-License-Identifier: Apache-2.0
"""Static plans: batches of one form share a place on the device, results stay apart."""

from __future__ import annotations

from functools import partial

from attention_cases import Batch, BIDIRECTIONAL, CAUSAL, Heads, make_batch, PREFIX_ONLY, Task
import pytest
import torch
from torch import Tensor

from oxygen_ros.engine.attention import create_backend, static_plan
from oxygen_ros.engine.attention.static import StaticPlan

HEADS = (Heads(8, 1, 256), Heads(15, 5, 64), Heads(4, 4, 40), Heads(4, 1, 32))
ROWS = [Task(1, CAUSAL, 5, 0), Task(1, CAUSAL, 0, 1), Task(1, CAUSAL, 70, 0)]
SPAN = [Task(17, BIDIRECTIONAL, 3, 0, scattered=False)]
BUILD = [Task(23, BIDIRECTIONAL, scattered=False)]
CUDA = pytest.param(
    'cuda',
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device'),
    ],
)


def batch_of(
    tasks: list[Task], heads: Heads = HEADS[3], dtype: torch.dtype = torch.float32, **options: int
) -> Batch:
    """Two prefixes, and NaN in every dead row."""
    return make_batch(heads, tasks, [300, 41], dtype=dtype, **options)


def result(batch: Batch, device: str) -> tuple[Tensor, Tensor]:
    """Run a batch on a device."""
    kv, q, k, v = (x.to(device) for x in (batch.kv, batch.q, batch.k, batch.v))
    backend = create_backend('static', kv, batch.heads.num_heads)
    plan = backend.plan(batch.spans)
    assert isinstance(plan, StaticPlan)
    out, lse = backend.run(plan, 0, q, k, v)
    return out.cpu().double(), lse.cpu().double()


@pytest.mark.parametrize('device', ['cpu', CUDA])
@pytest.mark.parametrize('heads', HEADS)
@pytest.mark.parametrize('tasks', [ROWS, SPAN, BUILD])
@pytest.mark.parametrize(('dtype', 'tolerance'), [(torch.float32, 2e-5), (torch.bfloat16, 2e-2)])
def test_it_equals_dense_softmax(
    device: str, heads: Heads, tasks: list[Task], dtype: torch.dtype, tolerance: float
) -> None:
    batch = batch_of(tasks, heads, dtype)
    expected_out, expected_lse = batch.expected()
    out, lse = result(batch, device)
    torch.testing.assert_close(out, expected_out, rtol=0.0, atol=tolerance)
    torch.testing.assert_close(lse, expected_lse, rtol=0.0, atol=tolerance)


def test_batches_of_one_form_may_alternate() -> None:
    batch = batch_of(ROWS)
    backend = create_backend('static', batch.kv, batch.heads.num_heads)
    # The same rows in another order, so on other prefixes and pages
    turned = [*batch.spans[1:], batch.spans[0]]
    plans = [backend.plan(spans) for spans in (batch.spans, turned)]
    assert isinstance(plans[0], StaticPlan) and isinstance(plans[1], StaticPlan)
    assert plans[0].buffers is plans[1].buffers
    rows = [0, 1, 2], [1, 2, 0]
    expected, _ = batch.expected()
    for turn in (0, 1, 0, 1):
        q, k, v = (x[rows[turn]] for x in (batch.q, batch.k, batch.v))
        out = backend.attend(plans[turn], 0, q, k, v)
        torch.testing.assert_close(out.double(), expected[rows[turn]], rtol=0.0, atol=2e-5)


@pytest.mark.parametrize(
    ('tasks', 'is_static'),
    [
        (ROWS, True),
        (SPAN, True),
        (BUILD, True),
        ([Task(5, CAUSAL, 0, 0)], False),  # a text's prompt
        ([*ROWS, Task(3, CAUSAL, 2, 0)], False),  # a row with forced tokens
        ([Task(5, PREFIX_ONLY, prefix=0)], False),
        ([Task(9, BIDIRECTIONAL, 0, 0)], False),  # scattered
        ([Task(1, CAUSAL, 4)], False),
    ],
)  # without a prefix
def test_only_the_batches_that_run_most_have_a_form(tasks: list[Task], is_static: bool) -> None:
    batch = batch_of(tasks)
    backend = create_backend('static', batch.kv, batch.heads.num_heads)
    plan = backend.plan(batch.spans)
    assert (static_plan(partial(backend.attend, plan)) is plan) is is_static
    assert static_plan(lambda layer, q, k, v: q) is None
