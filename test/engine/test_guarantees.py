# SPDX-License-Identifier: Apache-2.0
"""What is promised of results: suspended, batched, joined, left, cancelled, out of memory."""

import contextlib
import os
import random
import subprocess
import sys

from harness import FakeSensors, Harness, MS, PERIOD_NS
from hypothesis import given, HealthCheck, settings, strategies
import numpy as np
import pytest
import torch

from oxygen_ros.engine.config import KVConfig
from oxygen_ros.engine.scheduling.work import UnitKind
from oxygen_ros.types import FinishReason, TaskType

LAYERS = 4
TIE = 1e-3  # below this margin the top two tokens count as equal

seeds = strategies.integers(0, 10**6)
quick = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


def record_logits(harness):
    harness.logits = {}
    take = harness.engine.text._take_tokens

    def record(requests, logits):
        for request, row in zip(requests, logits):
            harness.logits.setdefault(request.request_id, []).append(row.clone())
        take(requests, logits)

    harness.engine.text._take_tokens = record
    return harness


def equal_up_to_ties(ours, alone):
    """Guarantee (c): logits within 1e-4, tokens equal up to the first step whose top two tie."""
    for step, (row, expected) in enumerate(zip(ours.rows, alone.rows)):
        assert (row - expected).abs().max() < 1e-4, step
        top = expected.topk(2).values
        if top[0] - top[1] < TIE:
            return
        assert ours.tokens[step] == alone.tokens[step]
    assert len(ours.tokens) == len(alone.tokens)


class Outcome:
    def __init__(self, harness, request_id):
        self.tokens = harness.results[request_id].tokens
        self.rows = harness.logits[request_id]


class CutScheduler:
    """Makes slices end at random units, as a busy tick would."""

    def __init__(self, harness, seed):
        self.random = random.Random(seed)
        scheduler = harness.engine.scheduler
        self.inner = scheduler.forward_step
        scheduler.forward_step = self.forward_step
        self.scheduler = scheduler

    def forward_step(self, work, deadline_ns):
        self.scheduler._micro_slice_ns = self.random.choice([1, MS, 3 * MS, 50 * MS])
        return self.inner(work, deadline_ns)


def same_batch_run(cut_seed, model=None):
    """Three requests admitted together on one frame, decoded as one batch throughout."""
    harness = record_logits(Harness(model, sensors=FakeSensors(2, num_observations=1)))
    if cut_seed is not None:
        CutScheduler(harness, cut_seed)
    harness.run_until(lambda: harness.chunks)
    for request_id in (1, 2, 3):
        harness.ask(f'question {request_id}', max_tokens=24, request_id=request_id)
    # No step begins before all three prompts stand, so that every run decodes the same batches.
    decodable = harness.engine.text._decodable

    def decodable_once_all_prompts_stand():
        text = harness.engine.text
        ready = not text._prompts and all(request.tokens for request in text.live())
        return decodable() if ready else []

    harness.engine.text._decodable = decodable_once_all_prompts_stand
    harness.engine.text._decode._ready = harness.engine.text._decodable
    harness.finish_text()
    return harness


@quick
@given(seed=seeds)
def test_suspend_and_resume_with_the_same_batch_is_bit_identical_and_recomputes_nothing(seed):
    plain, cut = same_batch_run(None), same_batch_run(seed)
    for request_id in (1, 2, 3):
        assert plain.results[request_id].tokens == cut.results[request_id].tokens
        for row, expected in zip(cut.logits[request_id], plain.logits[request_id], strict=True):
            assert torch.equal(row, expected)
    assert (
        plain.engine.counters.units[UnitKind.DECODE] == cut.engine.counters.units[UnitKind.DECODE]
    )
    assert cut.engine.counters.units[UnitKind.DECODE] == LAYERS * cut.engine.counters.decode_steps
    assert cut.engine.counters.units[UnitKind.TEXT_PREFILL] == LAYERS * 3
    assert cut.engine.counters.tokens_recomputed == 0
    by_input = {chunk_key(chunk): chunk.values for chunk in plain.chunks}
    shared = [chunk for chunk in cut.chunks if chunk_key(chunk) in by_input]
    assert len(shared) > 3
    for chunk in shared:
        assert np.array_equal(chunk.values, by_input[chunk_key(chunk)])


def chunk_key(chunk):
    """What an action depends on: prefix, stamp of the state, noise (keyed by the observation)."""
    return chunk.provenance.observation_id, chunk.provenance.state_stamp_ns


def run_with_arrivals(seed, wanted, deterministic=True, **config):
    """Requests 1.. with fixed prompts on frame 1, among others that join, leave, are cancelled."""
    generator = random.Random(seed)
    harness = record_logits(
        Harness(sensors=FakeSensors(2, num_observations=1), deterministic=deterministic, **config)
    )
    CutScheduler(harness, seed)
    harness.run_until(lambda: harness.chunks)
    pending = list(wanted)
    generator.shuffle(pending)
    others = []
    for _ in range(4000):
        if pending and generator.random() < 0.5:
            request_id = pending.pop()
            harness.ask(
                f'question {request_id}',
                max_tokens=3 + request_id % 7,
                request_id=request_id,
                task=TaskType(1 + request_id % 2),
                temperature=0.7 * (request_id % 3 == 0),
                seed=request_id,
            )
        if generator.random() < 0.3 and len(others) < 12:
            others.append(
                harness.ask(
                    'other', max_tokens=generator.randint(1, 9), request_id=1000 + len(others)
                )
            )
        if others and generator.random() < 0.2:
            harness.engine.cancel_text(generator.choice(others))
        harness.cycle()
        if not pending and all(request_id in harness.results for request_id in wanted):
            break
    return harness


@quick
@given(seed=seeds)
def test_deterministic_mode_is_bit_identical_under_any_arrivals_joins_and_cancels(seed):
    wanted = [1, 2, 3, 4]
    alone = {request_id: run_with_arrivals(0, [request_id]) for request_id in wanted}
    together = run_with_arrivals(seed, wanted)
    for request_id in wanted:
        assert together.results[request_id].tokens == alone[request_id].results[request_id].tokens
        for row, expected in zip(
            together.logits[request_id], alone[request_id].logits[request_id], strict=True
        ):
            assert torch.equal(row, expected)


@quick
@given(seed=seeds)
def test_batched_results_equal_single_runs_up_to_ties(seed):
    wanted = [1, 2, 4, 5]  # greedy ones
    together = run_with_arrivals(seed, wanted, deterministic=False)
    for request_id in wanted:
        alone = run_with_arrivals(0, [request_id], deterministic=False)
        equal_up_to_ties(Outcome(together, request_id), Outcome(alone, request_id))


@quick
@given(seed=seeds)
def test_exhausted_memory_costs_recomputed_tokens_and_nothing_else(seed):
    wanted = [1, 2, 4, 5, 7, 8]
    together = run_with_arrivals(
        seed,
        wanted,
        deterministic=False,
        max_text_tokens=64,
        kv=KVConfig(block_size=4, num_text_blocks=24),
    )
    assert together.engine.counters.requests_refused == 0
    for request_id in wanted:
        alone = run_with_arrivals(0, [request_id], deterministic=False)
        equal_up_to_ties(Outcome(together, request_id), Outcome(alone, request_id))


def test_exhaustion_preempts_and_the_text_continues_where_it_was():
    harness = record_logits(
        Harness(
            sensors=FakeSensors(2, num_observations=1),
            max_text_tokens=64,
            kv=KVConfig(block_size=4, num_text_blocks=24),
        )
    )
    harness.run_until(lambda: harness.chunks)
    for request_id in range(1, 9):
        harness.ask(f'question {request_id}', max_tokens=30, request_id=request_id)
    harness.finish_text()
    counters = harness.engine.counters
    assert counters.preemptions > 0
    assert counters.tokens_recomputed > 0
    assert {result.finish_reason for result in harness.results.values()} == {FinishReason.LENGTH}
    for request_id, result in harness.results.items():
        text = ''.join(delta.text for delta in harness.deltas if delta.request_id == request_id)
        assert text == result.text
        assert len(result.tokens) == 30


def test_sixty_four_requests_each_equal_their_single_run():
    generator = random.Random(5)
    lengths = {request_id: generator.randint(1, 24) for request_id in range(1, 65)}

    def run(request_ids):
        harness = record_logits(Harness(sensors=FakeSensors(2, num_observations=1)))
        harness.run_until(lambda: harness.chunks)
        for request_id in request_ids:
            harness.ask(
                f'question {request_id}', max_tokens=lengths[request_id], request_id=request_id
            )
        return harness.finish_text()

    together = run(lengths)
    assert together.engine.counters.decode_rows > 4 * together.engine.counters.decode_steps
    for request_id in lengths:
        equal_up_to_ties(Outcome(together, request_id), Outcome(run([request_id]), request_id))


def test_requests_of_different_frames_decode_as_one_batch():
    harness = Harness(
        sensors=FakeSensors(2), kv=KVConfig(text_prefix_max_age_s=0.0, max_live_prefixes=6)
    )
    for request_id in range(1, 4):
        harness.run(6)
        harness.ask(max_tokens=200, request_id=request_id)
    harness.run(2)
    frames = {request.context.prefix.observation_id for request in harness.engine.text.live()}
    assert len(frames) == 3
    steps, rows = harness.engine.counters.decode_steps, harness.engine.counters.decode_rows
    harness.run(3)
    counters = harness.engine.counters
    assert counters.decode_rows - rows == 3 * (counters.decode_steps - steps) > 0


@pytest.mark.parametrize('kind', [UnitKind.TEXT_PREFILL, UnitKind.DECODE, UnitKind.HEAD, None])
@pytest.mark.parametrize('victim', [1, 2, 3])
def test_cancel_at_every_kind_of_slice_returns_blocks_and_ends_once(kind, victim):
    harness = record_logits(
        Harness(sensors=FakeSensors(2, num_observations=1), deterministic=True)
    )
    harness.run_until(lambda: harness.chunks)
    baseline = harness.engine.manager.pool.num_free
    harness.engine.scheduler._micro_slice_ns = 1  # one unit a slice
    for request_id in (1, 2, 3):
        harness.ask(f'question {request_id}', max_tokens=6, request_id=request_id)
    seen = []

    def look():
        for work in harness.engine.text.works(harness.clock.now_ns()):
            unit = work.next_unit()
            if unit is not None and unit.kind is kind and not seen:
                seen.append(unit)
                assert harness.engine.cancel_text(victim)
                assert not harness.engine.cancel_text(victim)

    if kind is None:
        harness.engine.cancel_text(victim)
    else:
        harness.on_poll = look
    harness.finish_text()
    assert kind is None or seen
    assert harness.results[victim].finish_reason is FinishReason.CANCELLED
    results = [event for event in harness.events if type(event).__name__ == 'TextResult']
    assert sorted(result.request_id for result in results) == [1, 2, 3]
    assert harness.engine.manager.pool.num_free == baseline
    for other in {1, 2, 3} - {victim}:
        assert harness.results[other].finish_reason is FinishReason.LENGTH
        assert harness.results[other].tokens == alone_tokens(other)


_ALONE = {}


def alone_tokens(request_id):
    if request_id not in _ALONE:
        harness = Harness(sensors=FakeSensors(2, num_observations=1), deterministic=True)
        harness.run_until(lambda: harness.chunks)
        harness.ask(f'question {request_id}', max_tokens=6, request_id=request_id)
        _ALONE[request_id] = harness.finish_text().results[request_id].tokens
    return _ALONE[request_id]


def schedule_of(harness):
    return harness.engine.timeline.snapshot()


@pytest.mark.parametrize('kind', [UnitKind.INGEST, UnitKind.VISION, UnitKind.PREFILL])
def test_cancel_while_a_prefix_of_its_own_is_being_built_gives_the_slot_back(kind):
    harness = Harness(sensors=FakeSensors(2, num_observations=1), kv=KVConfig(sharing='isolated'))
    harness.run_until(lambda: harness.chunks)
    baseline = harness.engine.manager.pool.num_free
    harness.engine.scheduler._micro_slice_ns = 1
    harness.ask(request_id=1)
    harness.ask(request_id=2)
    seen = []

    def look():
        for work in harness.engine.text.works(harness.clock.now_ns()):
            unit = work.next_unit()
            if unit is not None and unit.kind is kind and not seen:
                seen.append(unit)
                assert harness.engine.cancel_text(1)

    harness.on_poll = look
    harness.finish_text()
    assert seen
    assert harness.results[1].finish_reason is FinishReason.CANCELLED
    assert harness.results[2].finish_reason is FinishReason.LENGTH
    assert harness.engine.manager.pool.num_free == baseline


@contextlib.contextmanager
def heavy_cpu_load():
    """One spinning process for each core."""
    burners = [
        subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(os.cpu_count())
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_two_deterministic_runs_one_under_heavy_load_give_the_same_schedule_and_outputs():
    def run():
        harness = Harness(deterministic=True)
        for request_id in range(1, 6):
            harness.run(5)
            harness.ask(max_tokens=20, request_id=request_id, temperature=0.8, seed=request_id)
        return harness.finish_text()

    first = run()
    with heavy_cpu_load():
        second = run()
    assert np.array_equal(schedule_of(first), schedule_of(second))
    for ours, theirs in zip(first.chunks, second.chunks, strict=True):
        assert np.array_equal(ours.values, theirs.values)
    assert {key: result.tokens for key, result in first.results.items()} == {
        key: result.tokens for key, result in second.results.items()
    }


def test_a_long_prefill_never_blocks_an_action():
    harness = Harness(sensors=FakeSensors(2, period_ns=20 * MS), observation_period_s=0.0)
    harness.run(100)
    starts = [chunk.pass_started_ns for chunk in harness.chunks]
    assert max(np.diff(starts)) <= PERIOD_NS + 4 * MS


def test_a_request_that_can_never_fit_is_refused_with_needed_and_available():
    harness = Harness(kv=KVConfig(block_size=4, num_text_blocks=8), max_text_tokens=512)
    harness.run(3)
    harness.ask(max_tokens=200, request_id=7)
    result = harness.results[7]
    assert result.finish_reason is FinishReason.REFUSED
    assert 'needed 52 blocks' in result.message
    assert f'available {harness.engine.manager.pool.max_text_blocks}' in result.message


def test_more_live_requests_than_allowed_are_refused():
    harness = Harness(max_text_requests=2)
    for request_id in (1, 2, 3):
        harness.ask(request_id=request_id)
    assert harness.results[3].finish_reason is FinishReason.REFUSED
    assert 'at most 2' in harness.results[3].message


def test_a_stop_string_ends_the_text_before_it():
    harness = Harness(sensors=FakeSensors(2, num_observations=1), deterministic=True)
    harness.run_until(lambda: harness.chunks)
    harness.ask('question', max_tokens=60, request_id=1)
    text = harness.finish_text().results[1].text
    stop = text[20:22]
    harness.ask('question', max_tokens=60, request_id=2, stop=(stop,))
    result = harness.finish_text().results[2]
    assert result.finish_reason is FinishReason.STOP
    assert result.text == text[: text.index(stop)]
