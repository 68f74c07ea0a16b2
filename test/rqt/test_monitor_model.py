# SPDX-License-Identifier: Apache-2.0
"""What the monitor shows, without Qt: history, pause, staleness, plots as data."""

import csv
import math

import numpy as np
import pytest
from reports import Clock, feed, report, STAMP_NS

from oxygen_ros.figures.latency_fields import FIELDS
from oxygen_ros.figures.thresholds import Level
from oxygen_ros.rqt.figures import BY_FIELD, FIGURES, percent, size
from oxygen_ros.rqt.model import Feed, LatencyHistory, MonitorModel, STALE_AFTER_S, write_csv
from oxygen_ros.rqt.plots import ages, first_token, jitter, kv_use, missed, PANELS, stages


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def model(clock):
    return MonitorModel(clock)


def test_reports_that_stop_are_stale_within_five_seconds(model, clock):
    assert model.history.feed() is Feed.WAITING
    assert model.status() == 'waiting for the first report'
    feed(model.history, clock, 30)
    assert model.history.feed() is Feed.LIVE
    assert model.status() == 'live, 10 reports/s'
    clock.now_s += STALE_AFTER_S + 0.01
    assert STALE_AFTER_S < 5.0 - 1.0
    assert model.history.feed() is Feed.STALE
    assert model.status().startswith('stale: no report for 3 s')
    feed(model.history, clock, 1)
    assert model.history.feed() is Feed.LIVE


def test_a_paused_view_stands_still_and_misses_nothing(model, clock):
    feed(model.history, clock, 20)
    model.pause(True)
    before = model.view()
    feed(model.history, clock, 20)
    during = model.view()
    assert np.array_equal(before.rows, during.rows)
    assert np.array_equal(before.times_s, during.times_s)
    assert model.status() == 'paused (live, 10 reports/s)'
    model.pause(False)
    assert len(model.view().rows) == 40


def test_clear_forgets_and_goes_on(model, clock):
    feed(model.history, clock, 5)
    model.history.add_camera_ages({'front': 30.0})
    model.clear()
    assert model.history.feed() is Feed.WAITING
    assert model.view().newest is None and not model.view().cameras
    feed(model.history, clock, 2)
    assert len(model.view().rows) == 2


def test_the_oldest_reports_make_room(clock):
    history = LatencyHistory(capacity=8, clock=clock)
    feed(history, clock, 20)
    span = history.everything()
    assert len(history) == len(span.rows) == 8
    assert span.rows[:, FIELDS.index('ticks')].tolist() == [5.0 * index for index in range(12, 20)]
    assert (np.diff(span.times_s) > 0.0).all()


def test_a_window_holds_the_reports_of_its_time(model, clock):
    feed(model.history, clock, 300)
    clock.now_s += 0.05
    model.window_s = 10.0
    span = model.view()
    assert len(span.rows) == 100
    assert span.times_s[0] >= -10.001 and span.times_s[-1] <= 0.0


def test_every_panel_can_be_made_of_nothing(model):
    for panel in PANELS:
        plot = panel(model.view())
        assert plot.empty and plot.headline == ''
        assert plot.level is Level.UNKNOWN


@pytest.mark.parametrize(
    'values, panel, level',
    [
        ({'jitter_p99_ms': 0.3}, jitter, Level.GOOD),
        ({'jitter_p99_ms': 1.5}, jitter, Level.WARN),
        ({'jitter_p99_ms': 2.5}, jitter, Level.BAD),
        ({'on_time_ratio': 0.97}, missed, Level.WARN),
        ({'action_wait_p99_ms': 21.0}, stages, Level.BAD),
        ({'ttft_ms': 500.0}, first_token, Level.WARN),
        ({'ttft_ms': math.nan}, first_token, Level.UNKNOWN),
        ({'kv_blocks_free': 0.0}, kv_use, Level.BAD),
        ({'camera_age_max_ms': 1500.0}, ages, Level.BAD),
    ],
)
def test_a_plot_has_the_level_of_its_newest_figure(model, clock, values, panel, level):
    feed(model.history, clock, 3)
    feed(model.history, clock, 1, make=lambda index: report(**values))
    assert panel(model.view()).level is level


def test_the_first_limit_is_always_in_sight(model, clock):
    feed(model.history, clock, 3)
    plot = jitter(model.view())
    assert plot.threshold is not None and plot.top() > plot.threshold.warn


def test_missed_deadlines_are_counted_by_cause_and_none_twice(model, clock):
    def made(index):
        skipped, held, late = min(index, 4), 2.0 * (index >= 5), 1.0 * (index >= 7)
        ticks = 5.0 * (index + 1)
        missing = skipped + held + late
        return report(
            ticks=ticks,
            overruns=skipped,
            held=held,
            on_time_ratio=1.0 - missing / (ticks + skipped),
        )

    feed(model.history, clock, 40, make=made)
    plot = missed(model.view())
    assert {series.label: series.values.sum() for series in plot.series} == {
        'skipped': 4.0,
        'held': 2.0,
        'late or old': 1.0,
    }


def test_bars_keep_their_places_while_time_goes_on(model, clock):
    feed(model.history, clock, 30, make=lambda index: report(overruns=float(index)))
    first = missed(model.view()).series[0]
    clock.now_s += 0.3
    second = missed(model.view()).series[0]
    assert first.values[first.values > 0.0].tolist() == second.values[second.values > 0.0].tolist()


def test_kv_is_shown_shared_and_isolated_in_one_unit(model, clock):
    feed(model.history, clock, 2)
    plot = kv_use(model.view())
    assert plot.unit == 'MiB'
    assert {series.label: series.values[-1] for series in plot.series} == {
        'isolated': 3.0,
        'shared': 1.0,
    }
    assert plot.headline == '1.00 MiB, 66.67 % saved'


def test_each_camera_has_its_own_line_where_its_age_is_known(model, clock):
    feed(model.history, clock, 2)
    assert ages(model.view()).series[-1].label == 'oldest camera'
    model.history.add_camera_ages({'wrist': 30.0, 'front': 20.0})
    assert [series.label for series in ages(model.view()).series[-2:]] == ['front', 'wrist']


def test_each_new_dialogue_is_a_dot_and_holds_until_the_next(model, clock):
    waits_ms = [math.nan, 180.0, 180.0, 180.0, math.nan, 240.0, 240.0]
    feed(model.history, clock, 7, make=lambda index: report(ttft_ms=waits_ms[index]))
    steps, dots = first_token(model.view()).series
    assert dots.times_s.tolist() == pytest.approx([-0.5, -0.1])
    assert dots.values.tolist() == [180.0, 240.0]
    assert steps.times_s.tolist() == pytest.approx([-0.5, -0.1, -0.1, 0.0])
    assert steps.values.tolist() == [180.0, 180.0, 240.0, 240.0]


def test_csv_holds_every_report_with_all_digits(model, clock, tmp_path):
    feed(
        model.history,
        clock,
        3,
        make=lambda index: report(jitter_sd_ms=index / 3.0, ttft_ms=math.nan),
    )
    clock.now_s += 0.01
    model.history.add_camera_ages({'front': 25.0})
    feed(model.history, clock, 1)
    assert write_csv(tmp_path / 'latency.csv', model.history) == 4
    with (tmp_path / 'latency.csv').open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ['stamp_s', *FIELDS, 'camera_age_ms.front']
    assert [float(row['jitter_sd_ms']) for row in rows[:3]] == [0.0, 1.0 / 3.0, 2.0 / 3.0]
    assert rows[0]['ttft_ms'] == ''
    assert float(rows[0]['stamp_s']) == STAMP_NS * 1e-9
    assert [row['camera_age_ms.front'] for row in rows] == ['', '', '', '25.0']


def test_texts_never_round_up_to_perfect():
    assert [percent(value) for value in (1.0, 0.99999, 0.5, math.nan)] == [
        '100 %',
        '99.99 %',
        '50.00 %',
        '--',
    ]
    assert [size(value) for value in (12.0, 2048.0, 3.5 * 2**30)] == [
        '12.0 B',
        '2.00 KiB',
        '3.50 GiB',
    ]


def test_figures_know_their_worst():
    values = np.array([0.9, math.nan, 1.0])
    assert BY_FIELD['on_time_ratio'].worst(values) == 0.9
    assert BY_FIELD['jitter_sd_ms'].worst(values) == 1.0
    assert math.isnan(BY_FIELD['held'].worst(np.array([math.nan])))
    assert {figure.field for figure in FIGURES} >= set(FIELDS) - {'window_s', 'ticks'}
