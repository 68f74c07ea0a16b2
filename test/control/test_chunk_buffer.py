# SPDX-License-Identifier: Apache-2.0
"""The chunk buffer: interpolation, seams, epochs and what is dropped."""

from control_rig import make_chunk, MS, PERIOD_NS, START_NS
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from oxygen_ros.control import ChunkBuffer, hold_reasons


def filled(values, *, blend_ms=100, **settings):
    buffer = ChunkBuffer(1, PERIOD_NS, blend_ms * MS)
    buffer.add(make_chunk(1, START_NS, values, **settings))
    return buffer


def value_at(buffer, offset_ms):
    sample = buffer.sample(START_NS + round(offset_ms * MS))
    return None if sample is None else sample.values[0]


def test_between_two_steps_the_target_is_linear_in_time():
    buffer = filled([0.0, 8.0, 4.0], step_ns=40 * MS)
    assert [value_at(buffer, ms) for ms in (0, 5, 10, 40, 50, 80)] == [0, 1, 2, 8, 7, 4]


@given(st.integers(0, 15 * 33_333_333))
def test_interpolation_agrees_with_numpy(offset_ns):
    values = np.sin(np.arange(16.0)).astype(np.float32)
    buffer = filled(values, step_ns=33_333_333)
    expected = np.interp(offset_ns, np.arange(16) * 33_333_333, values)
    assert buffer.sample(START_NS + offset_ns).values[0] == pytest.approx(expected, abs=1e-12)


def test_a_second_chunk_seen_at_the_same_time_is_played_at_once():
    buffer = filled([0.0, 1.0, 2.0])
    assert value_at(buffer, 0) == 0.0
    buffer.add(make_chunk(2, START_NS + 10 * MS, [5.0, 6.0]))
    assert value_at(buffer, 0) == 5.0


def test_before_step_0_the_target_rests_at_step_0_and_after_the_last_there_is_none():
    buffer = filled([3.0, 4.0])
    assert value_at(buffer, -50) == 3.0
    assert value_at(buffer, 20) == 4.0
    assert buffer.sample(START_NS + 20 * MS + 1) is None
    assert buffer.has_chunk


def test_past_steps_of_a_late_chunk_fall_away():
    buffer = filled(np.arange(16.0))
    assert value_at(buffer, 140) == 7.0


def test_a_chunk_wholly_in_the_past_is_dropped_and_counted():
    buffer = filled([1.0, 2.0])
    assert value_at(buffer, 21) is None
    assert not buffer.has_chunk
    assert (buffer.counts.late, buffer.counts.played) == (1, 0)


def test_the_seam_moves_the_weight_from_the_old_chunk_to_the_new_one():
    buffer = filled(np.zeros(50))
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS, np.ones(50), started_ns=START_NS + 180 * MS))
    samples = [buffer.sample(START_NS + ms * MS) for ms in range(200, 320, 20)]
    assert [sample.values[0] for sample in samples] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1, 1])
    assert samples[0].chunk_ids == (2, 1)
    assert samples[0].observation_ids == (102, 101)
    assert samples[0].weights == pytest.approx((0.2, 0.8))
    assert samples[-1].weights == (1.0,)


def test_with_a_chunk_in_every_tick_the_newest_is_played_at_once():
    buffer = ChunkBuffer(1, PERIOD_NS, 100 * MS)
    for tick in range(20):
        now_ns = START_NS + tick * PERIOD_NS
        buffer.add(make_chunk(tick + 1, now_ns, np.full(16, float(tick))))
        sample = buffer.sample(now_ns)
        assert (sample.chunk_ids, sample.weights, sample.values[0]) == ((tick + 1,), (1.0,), tick)


def test_a_chunk_from_the_future_is_fully_played_from_its_step_0():
    buffer = filled(np.zeros(50))
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS + 340 * MS, np.ones(50)))
    values = [value_at(buffer, ms) for ms in range(200, 380, 20)]
    assert values == pytest.approx([0, 0, 0, 0.2, 0.4, 0.6, 0.8, 1, 1])


def test_a_chunk_too_far_in_the_future_is_refused():
    buffer = filled([1.0, 2.0])
    assert buffer.sample(START_NS - 1001 * MS).fault == hold_reasons.REFUSED_TIMING
    assert buffer.sample(START_NS - 999 * MS).fault == ''


def test_a_chunk_that_ended_a_moment_ago_fades_out_from_its_last_step():
    buffer = filled([5.0, 5.0])
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS, np.zeros(50)))
    assert value_at(buffer, 100) == pytest.approx(5.0 * 0.8)
    buffer.add(make_chunk(3, START_NS, np.zeros(50)))
    assert buffer.sample(START_NS + 800 * MS).chunk_ids == (3, 2)


def test_a_chunk_long_ended_does_not_come_back_in_a_seam():
    buffer = filled([5.0, 5.0])
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS, np.zeros(50)))
    assert buffer.sample(START_NS + 200 * MS).chunk_ids == (2,)


def test_after_a_stall_the_seam_is_still_blended():
    buffer = filled(np.zeros(50))
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS, np.ones(50)))
    assert value_at(buffer, 300) == pytest.approx(0.2)


def test_a_reset_forgets_everything_and_drops_what_was_computed_before_it():
    buffer = filled(np.zeros(50))
    value_at(buffer, 0)
    assert buffer.reset() == buffer.epoch == 1
    assert not buffer.has_chunk
    buffer.add(make_chunk(2, START_NS, np.zeros(50), epoch=0))
    assert value_at(buffer, 20) is None
    assert buffer.counts.old_epoch == 1
    buffer.add(make_chunk(3, START_NS, np.ones(50), epoch=1))
    assert buffer.sample(START_NS + 40 * MS).chunk_ids == (3,)


def test_a_newer_epoch_replaces_without_a_seam_and_an_older_one_is_dropped_after_it():
    buffer = filled(np.zeros(50))
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS, np.ones(50), epoch=4))
    assert value_at(buffer, 20) == 1.0
    buffer.add(make_chunk(3, START_NS, np.zeros(50), epoch=3))
    assert value_at(buffer, 40) == 1.0
    assert buffer.counts.old_epoch == 1


def test_an_engine_that_starts_again_at_epoch_0_is_heard_after_a_reset_to_0():
    buffer = filled(np.zeros(50), epoch=7)
    value_at(buffer, 0)
    assert buffer.reset(epoch=0) == 0
    buffer.add(make_chunk(1, START_NS, np.ones(50)))
    assert value_at(buffer, 20) == 1.0


def test_a_chunk_overtaken_by_a_later_pass_is_dropped():
    buffer = filled(np.ones(50), started_ns=START_NS + 5 * MS)
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS, np.zeros(50), started_ns=START_NS + 4 * MS))
    assert value_at(buffer, 20) == 1.0
    assert buffer.counts.out_of_order == 1


def test_of_several_chunks_in_one_tick_the_newest_is_played():
    buffer = ChunkBuffer(1, PERIOD_NS)
    for chunk_id in range(1, 21):
        buffer.add(make_chunk(chunk_id, START_NS, np.ones(50)))
    assert buffer.sample(START_NS).chunk_ids == (20,)
    assert buffer.counts.played == 1
    assert buffer.counts.superseded == 7


@pytest.mark.parametrize(
    'values, fault',
    [
        (np.array([[1.0], [np.nan]]), hold_reasons.REFUSED_NONFINITE),
        (np.array([[1.0], [np.inf]]), hold_reasons.REFUSED_NONFINITE),
        (np.zeros((3, 2)), hold_reasons.REFUSED_LENGTH),
        (np.zeros((0, 1)), hold_reasons.REFUSED_LENGTH),
        (np.zeros((2, 1, 1)), hold_reasons.REFUSED_LENGTH),
    ],
)
def test_a_broken_chunk_is_reported_as_a_fault_and_forgotten_with_the_next(values, fault):
    buffer = filled(np.zeros(50))
    value_at(buffer, 0)
    buffer.add(make_chunk(2, START_NS, values))
    sample = buffer.sample(START_NS + 20 * MS)
    assert (sample.fault, sample.chunk_ids) == (fault, (2,))
    buffer.add(make_chunk(3, START_NS, np.ones(50)))
    sample = buffer.sample(START_NS + 40 * MS)
    assert (sample.fault, sample.chunk_ids, sample.values[0]) == ('', (3,), 1.0)
    assert buffer.counts.faulty == 1


def test_a_chunk_without_a_step_length_is_refused():
    assert filled([1.0, 2.0], step_ns=0).sample(START_NS).fault == hold_reasons.REFUSED_TIMING


def test_values_are_copied_so_that_the_engine_may_reuse_its_memory():
    chunk = make_chunk(1, START_NS, np.ones(5))
    buffer = ChunkBuffer(1, PERIOD_NS)
    buffer.add(chunk)
    chunk.values[:] = 9.0
    assert value_at(buffer, 0) == 1.0


@given(
    gaps=st.lists(st.integers(0, 12), min_size=1, max_size=30),
    blend_ms=st.sampled_from([0, 20, 100, 500]),
)
def test_weights_sum_to_1_and_few_chunks_are_mixed(gaps, blend_ms):
    buffer = ChunkBuffer(1, PERIOD_NS, blend_ms * MS)
    tick = 0
    for chunk_id, gap in enumerate(gaps, start=1):
        start_ns = START_NS + tick * PERIOD_NS
        buffer.add(make_chunk(chunk_id, start_ns, np.full(50, float(chunk_id))))
        for _ in range(gap):
            sample = buffer.sample(START_NS + tick * PERIOD_NS)
            assert sum(sample.weights) == pytest.approx(1.0, abs=1e-12)
            assert min(sample.weights) > 0.0
            assert len(sample.weights) == len(sample.chunk_ids) <= 3
            mixed = sum(w * i for w, i in zip(sample.weights, sample.chunk_ids))
            assert sample.values[0] == pytest.approx(mixed)
            tick += 1


@pytest.mark.parametrize('settings', [(0,), (1, 0), (1, 1, -1), (1, 1, 0, -1)])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ValueError, match='expected at least'):
        ChunkBuffer(*settings)
