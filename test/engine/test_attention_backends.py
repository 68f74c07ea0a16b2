# SPDX-License-Identifier: Apache-2.0
"""How attention goes about it: what is copied, what is refused, which backends there are."""

from dataclasses import replace
import hashlib

from attention_cases import (
    BIDIRECTIONAL,
    CAUSAL,
    Heads,
    make_batch,
    PREFIX_ONLY,
    robot_batch,
    Task,
)
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.attention import compare_speed
from oxygen_ros.engine.attention import backend_names, create_backend, register, SdpaBackend, Span

TINY = Heads(4, 1, 32)


class NewStorage(TorchDispatchMode):
    """Counts the bytes of every storage that an operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[int] = set()
        self.num_bytes = 0
        self.kept: list[torch.Tensor] = []  # so that no address is used twice

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        known = {x.untyped_storage().data_ptr() for x in args if isinstance(x, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(x, torch.Tensor):
                storage = x.untyped_storage()
                if storage.data_ptr() not in known | self.known:
                    self.known.add(storage.data_ptr())
                    self.num_bytes += storage.nbytes()
                    self.kept.append(x)
        return result


def spied(backend: SdpaBackend) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return a list that will hold the K and V of every kernel call."""
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    kernel = backend._kernel

    def spy(q, k, v, mask, scale):
        seen.append((k, v))
        return kernel(q, k, v, mask, scale)

    backend._kernel = spy
    return seen


@pytest.mark.parametrize('heads', [TINY, Heads(4, 2, 16), Heads(4, 4, 8)])
def test_sdpa_reads_every_prefix_in_place(heads):
    batch = robot_batch(heads=heads)
    backend = create_backend('sdpa', batch.kv, heads.num_heads)
    seen = spied(backend)
    backend.run(backend.plan(batch.spans), 0, batch.q, batch.k, batch.v)
    keys, values = batch.kv.flatten(2, 3)[0]  # [rows, num_kv_heads, head_dim]
    starts = {}
    for span in batch.spans:
        starts[keys[span.prefix_block * 8].data_ptr()] = span
    prefixes = [(k, v) for k, v in seen if k.data_ptr() in starts]
    assert len(prefixes) == 2  # one call for each prefix, whatever reads it
    for k, v in prefixes:
        span = starts[k.data_ptr()]
        assert k.shape == v.shape == (1, heads.num_kv_heads, span.prefix_tokens, heads.head_dim)
        assert k.stride()[1:] == v.stride()[1:] == keys.transpose(0, 1).stride()
        assert v.data_ptr() == values[span.prefix_block * 8].data_ptr()
    assert backend.prefix_bytes_copied == 0


def test_sdpa_makes_nothing_of_the_size_of_a_prefix_and_the_reference_counts_what_it_copies():
    length = 4096
    batch = make_batch(
        TINY,
        [
            Task(17, BIDIRECTIONAL, 7, 0, scattered=False),
            Task(1, CAUSAL, 30, 0),
            Task(1, CAUSAL, 12, 0),
            Task(2, PREFIX_ONLY, prefix=0),
        ],
        [length],
        block_size=16,
    )
    prefix_bytes = 2 * length * TINY.head_dim * 4
    for name, copies in (('sdpa', 0), ('reference', 4)):
        backend = create_backend(name, batch.kv, TINY.num_heads)
        plan = backend.plan(batch.spans)
        with NewStorage() as made:
            backend.run(plan, 0, batch.q, batch.k, batch.v)
        assert backend.prefix_bytes_copied == copies * prefix_bytes
        assert (made.num_bytes < prefix_bytes / 10) == (name == 'sdpa')


def test_a_run_of_own_blocks_is_read_in_place_and_building_a_prefix_is_one_call():
    batch = make_batch(TINY, [Task(23, BIDIRECTIONAL, scattered=False)], [])
    backend = create_backend('sdpa', batch.kv, TINY.num_heads)
    seen = spied(backend)
    backend.run(backend.plan(batch.spans), 0, batch.q, batch.k, batch.v)
    ((k, v),) = seen
    block = batch.spans[0].block_table[0]
    assert k.data_ptr() == batch.kv[0, 0, block].data_ptr()
    assert v.data_ptr() == batch.kv[0, 1, block].data_ptr()


@pytest.mark.parametrize('name', backend_names())
def test_no_reader_changes_a_prefix(name):
    batch = robot_batch()
    backend = create_backend(name, batch.kv, TINY.num_heads)

    def digest(span: Span) -> str:
        rows = batch.kv.flatten(2, 3)[:, :, span.prefix_block * 8 :][:, :, : span.prefix_tokens]
        return hashlib.sha256(rows.contiguous().numpy().tobytes()).hexdigest()

    before = [digest(span) for span in batch.spans]
    assert len(set(before)) == 2
    plan = backend.plan(batch.spans)
    for _ in range(3):
        backend.attend(plan, 0, batch.q, batch.k, batch.v)
        assert [digest(span) for span in batch.spans] == before


def test_a_dense_read_writes_nothing_and_takes_no_keys_of_its_own():
    batch = make_batch(TINY, [Task(5, PREFIX_ONLY, prefix=0)], [19])
    before = batch.kv.clone()
    for name in backend_names():
        backend = create_backend(name, batch.kv, TINY.num_heads)
        backend.run(backend.plan(batch.spans), 0, batch.q, batch.k[:0], batch.v[:0])
        assert torch.equal(batch.kv.view(torch.int32), before.view(torch.int32))


GOOD = Span(3, 0, 10, (4, 6), 2, CAUSAL)  # blocks of 4 rows, 8 of them


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'num_tokens': 0}, 'num_tokens: expected at least 1, got 0'),
        ({'num_own': -1}, 'expected at least 0, got 10, -1'),
        ({'prefix_tokens': -1}, 'expected at least 0, got -1, 2'),
        ({'num_tokens': 7}, r'block_table: expected at least 3 blocks for 2 \+ 7 tokens, got 2'),
        ({'block_table': ()}, 'block_table: expected at least 2 blocks'),
        ({'block_table': (4, 8)}, r'block_table: expected blocks within 0\.\.7'),
        ({'block_table': (-1, 4)}, r'block_table: expected blocks within 0\.\.7'),
        ({'block_table': (2, 4)}, r'block_table: expected no block of the prefix \(0\.\.2\)'),
        ({'prefix_block': 6}, r'prefix: expected blocks within 0\.\.7, got 6\.\.8'),
        ({'prefix_block': -1}, 'prefix: expected blocks within'),
        ({'mask': PREFIX_ONLY}, 'expected none for prefix_only'),
        (
            {'mask': PREFIX_ONLY, 'block_table': (), 'num_own': 0, 'prefix_tokens': 0},
            'prefix_tokens: expected at least 1 for prefix_only',
        ),
    ],
)
@pytest.mark.parametrize('name', backend_names())
def test_a_bad_span_is_refused_before_anything_is_written(name, changes, message):
    backend = create_backend(name, torch.zeros(1, 2, 8, 4, 1, 8), 4)
    backend.plan([GOOD])
    with pytest.raises(ValueError, match='span 1: .*' + message):
        backend.plan([GOOD, replace(GOOD, **changes)])
    with pytest.raises(ValueError, match='spans: expected at least one'):
        backend.plan([])


def test_backends_are_found_by_name_alone():
    assert {'reference', 'sdpa'} <= set(backend_names())
    kv = torch.zeros(1, 2, 8, 4, 2, 8)
    for name in backend_names():
        assert create_backend(name, kv, 4).name == name
    with pytest.raises(ValueError, match="expected one of reference, sdpa.*, got 'flash'"):
        create_backend('flash', kv, 4)
    with pytest.raises(ValueError, match="'sdpa' is registered already"):
        register('sdpa')(SdpaBackend)
    with pytest.raises(ValueError, match=r'num_heads: expected a multiple .*\(2\), got 3'):
        create_backend('sdpa', kv, 3)
    with pytest.raises(ValueError, match='kv: expected a contiguous'):
        create_backend('reference', kv[0], 4)


def test_a_given_scale_is_used_by_both():
    batch = make_batch(TINY, [Task(1, CAUSAL, 5, 0), Task(3, CAUSAL, 2, 0)], [12])
    expected, _ = batch.expected()
    batch.q *= 3.0
    for name in backend_names():
        backend = create_backend(name, batch.kv, TINY.num_heads, scale=TINY.head_dim**-0.5 / 3)
        out = backend.attend(backend.plan(batch.spans), 0, batch.q, batch.k, batch.v)
        torch.testing.assert_close(out.double(), expected, rtol=0.0, atol=1e-5)


def test_speed_is_compared_for_every_prefix_and_kind_of_batch():
    result = compare_speed(prefix_lengths=(32, 64), repeats=2)
    assert set(result) == {'action.32', 'action.64', 'decode.32', 'decode.64'}
    for row in result.values():
        assert row['ratio'] == pytest.approx(row['reference_us'] / row['sdpa_us'])
        assert row['sdpa_prefix_bytes_copied'] == 0
        assert row['reference_prefix_bytes_copied'] > 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')
@pytest.mark.parametrize('heads', [TINY, Heads(8, 2, 64), Heads(4, 4, 40)])
@pytest.mark.parametrize(
    ('dtype', 'tolerance'),
    [(torch.float32, 2e-5), (torch.bfloat16, 2e-2), (torch.float16, 4e-3), (torch.float64, 1e-12)],
)
def test_sdpa_on_a_gpu_equals_dense_softmax(heads, dtype, tolerance):
    batch = robot_batch(heads=heads, dtype=dtype)
    expected_out, expected_lse = batch.expected()
    kv, q, k, v = (x.cuda() for x in (batch.kv, batch.q, batch.k, batch.v))
    backend = create_backend('sdpa', kv, heads.num_heads)
    out, lse = backend.run(backend.plan(batch.spans), 0, q, k, v)
    torch.testing.assert_close(out.cpu().double(), expected_out, rtol=0.0, atol=tolerance)
    torch.testing.assert_close(lse.cpu().double(), expected_lse, rtol=0.0, atol=tolerance)
