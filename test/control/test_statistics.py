# SPDX-License-Identifier: Apache-2.0
"""What the tick's figures count."""

import math

from control_rig import MS
import numpy as np
import pytest

from oxygen_ros.control import hold_reasons, TickStatistics

MAX_AGE_NS = 150 * MS


def recorded(*ticks, capacity=1000):
    statistics = TickStatistics(MAX_AGE_NS, capacity)
    for number, settings in enumerate(ticks):
        settings = {'lateness_ns': 0, 'observation_age_ns': 50 * MS, **settings}
        statistics.record(settings.pop('tick', number), **settings)
    return statistics


@pytest.mark.parametrize(
    'settings, on_time',
    [
        ({}, True),
        ({'lateness_ns': 2 * MS}, True),
        ({'lateness_ns': 2 * MS + 1}, False),
        ({'observation_age_ns': MAX_AGE_NS}, True),
        ({'observation_age_ns': MAX_AGE_NS + 1}, False),
        ({'observation_age_ns': None}, False),
        ({'hold_reason': hold_reasons.NO_CHUNK}, False),
    ],
)
def test_on_time_is_punctual_fresh_and_from_a_young_observation(settings, on_time):
    assert recorded(settings).total().on_time == on_time


def test_a_skipped_deadline_counts_as_an_overrun_that_was_not_on_time():
    total = recorded({}, {}, {'tick': 7}, {'tick': 8}).total()
    assert (total.ticks, total.overruns, total.on_time) == (4, 5, 4)
    assert total.on_time_ratio == pytest.approx(4 / 9)


def test_deadlines_skipped_before_the_first_tick_count_too():
    assert recorded({'tick': 2}).total().overruns == 2


def test_held_ticks_are_counted_by_reason_unless_the_robot_is_disarmed():
    total = recorded(
        {'hold_reason': 'no_chunk', 'armed': False},
        {'hold_reason': 'no_chunk'},
        {'hold_reason': 'stopped'},
        {'hold_reason': 'stopped'},
        {},
    ).total()
    assert (total.held, total.hold_reasons) == (3, {'no_chunk': 1, 'stopped': 2})


def test_figures_agree_with_numpy():
    rng = np.random.default_rng(1)
    lateness_ms = rng.exponential(0.3, 700)
    age_ms = rng.uniform(0, 100, 700)
    statistics = recorded(
        *(
            {'lateness_ns': int(late * MS), 'observation_age_ns': int(age * MS)}
            for late, age in zip(lateness_ms, age_ms)
        )
    )
    for figures, first in ((statistics.total(), 0), (statistics.window(50), 650)):
        late, age = lateness_ms[first:], age_ms[first:]
        high = 99 if len(late) >= 100 else 100  # fewer have none beyond the 99th percentile
        assert figures.ticks == len(late)
        assert figures.lateness_mean_ms == pytest.approx(late.mean(), abs=1e-5)
        assert figures.lateness_sd_ms == pytest.approx(late.std(), abs=1e-5)
        assert figures.lateness_p50_ms == pytest.approx(np.percentile(late, 50), abs=1e-5)
        assert figures.lateness_p99_ms == pytest.approx(np.percentile(late, high), abs=1e-5)
        assert figures.lateness_max_ms == pytest.approx(late.max(), abs=1e-5)
        assert figures.observation_age_p99_ms == pytest.approx(np.percentile(age, high), abs=1e-5)


def test_the_age_of_a_held_target_is_left_out():
    figures = recorded({}, {'hold_reason': 'stopped', 'observation_age_ns': 9000 * MS}).total()
    assert figures.observation_age_p99_ms == 50.0


def test_a_window_counts_its_own_ticks_only():
    window = recorded({'hold_reason': 'stopped'}, {'tick': 4}, {'tick': 5}).window(1)
    assert (window.ticks, window.held, window.overruns, window.on_time_ratio) == (1, 0, 0, 1.0)


def test_beyond_its_capacity_the_counters_and_the_worst_still_cover_everything():
    total = recorded({'lateness_ns': 9 * MS}, *({} for _ in range(99)), capacity=10).total()
    assert (total.ticks, total.on_time, total.lateness_max_ms) == (100, 99, 9.0)
    assert total.lateness_p99_ms == 0.0


def test_nothing_measured_is_nan_and_a_reset_begins_anew():
    statistics = recorded({}, {'hold_reason': 'stopped'})
    statistics.reset()
    for figures in (statistics.total(), statistics.window(10)):
        assert (figures.ticks, figures.held, figures.hold_reasons) == (0, 0, {})
        assert math.isnan(figures.on_time_ratio)
        assert math.isnan(figures.lateness_sd_ms)
        assert math.isnan(figures.observation_age_p50_ms)


@pytest.mark.parametrize('settings', [(0,), (1, 0)])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ValueError, match='expected above 0, got 0'):
        TickStatistics(*settings)
