# SPDX-License-Identifier: Apache-2.0
"""Fields, growth of counters, limits and claims."""

import math
from pathlib import Path
import re

import numpy as np
import pytest

from oxygen_ros.figures.claims import CLAIMS, compare, Outcome
from oxygen_ros.figures.latency_fields import FIELDS, growth, kv_reduction, row_of
from oxygen_ros.figures.thresholds import judge, Level, Threshold, THRESHOLDS

MESSAGE = Path(__file__).resolve().parent.parent.parent / 'msg' / 'LatencyReport.msg'


def test_the_fields_are_those_of_the_message():
    assert tuple(re.findall(r'^float64 (\w+)', MESSAGE.read_text(), re.M)) == FIELDS


def test_limits_are_of_fields_and_in_order():
    for field, threshold in THRESHOLDS.items():
        assert field in FIELDS
        assert (threshold.warn < threshold.bad) == threshold.lower_is_better


def test_a_field_that_a_report_lacks_is_unknown():
    class Old:
        ticks = 7.0

    row = row_of(Old())
    assert row[FIELDS.index('ticks')] == 7.0
    assert np.isnan(row).sum() == len(FIELDS) - 1


@pytest.mark.parametrize(
    'counts, grown',
    [
        ([], []),
        ([5.0], [0.0]),
        ([5.0, 6.0, 6.0, 9.0], [0.0, 1.0, 0.0, 3.0]),
        ([90.0, 2.0, 3.0], [0.0, 2.0, 1.0]),
    ],
)
def test_a_counter_that_starts_again_grows_by_what_it_then_counts(counts, grown):
    assert growth(np.array(counts)).tolist() == grown


def test_a_figure_that_meets_a_limit_is_within_it():
    threshold = Threshold(0.4, 2.0)
    assert [threshold.judge(value) for value in (0.4, 0.41, 2.0, 2.1, math.nan)] == [
        Level.GOOD,
        Level.WARN,
        Level.WARN,
        Level.BAD,
        Level.UNKNOWN,
    ]
    assert judge('on_time_ratio', 0.994) is Level.GOOD
    assert judge('on_time_ratio', 0.9939) is Level.WARN
    assert judge('on_time_ratio', 0.5) is Level.BAD


def test_no_kv_at_all_saves_nothing_known():
    assert math.isnan(kv_reduction(0.0, 0.0))
    assert kv_reduction(1.0, 4.0) == 0.75


def test_the_heaviest_load_speaks_for_a_claim():
    findings = compare(
        {'tick.idle.full.sd_ms': 0.1, 'tick.dialogue4_scene_cameras.full.sd_ms': 0.5}
    )
    jitter = next(finding for finding in findings if 'jitter' in finding.claim.what)
    assert (jitter.value, jitter.outcome, jitter.text) == (0.5, Outcome.NOT_MET, '0.5 ms')


@pytest.mark.parametrize(
    'figures, what, outcome',
    [
        ({'kv.reduction': 0.62, 'kv.limit': 0.624}, 'KV', Outcome.MET),
        ({'kv.reduction': 0.62, 'kv.limit': 0.66}, 'KV', Outcome.NOT_MET),
        ({'tick.idle.full.sd_ms': 0.5, 'tick.bare.sd_ms': 0.3}, 'jitter', Outcome.MET),
        ({'tick.idle.full.sd_ms': 0.5, 'tick.bare.sd_ms': 0.1}, 'jitter', Outcome.NOT_MET),
        ({'preempt.wait_ms.p99': 4.0, 'tick.bare.p99_ms': 0.6}, 'wait', Outcome.MET),
    ],
)
def test_a_claim_asks_for_no_more_than_the_machine_can_do(figures, what, outcome):
    finding = next(finding for finding in compare(figures) if what in finding.claim.what)
    assert finding.outcome is outcome
    assert bool(finding.note) == (outcome is Outcome.MET)


def test_claims_without_figures_say_so():
    findings = compare({})
    assert len(findings) == len(CLAIMS)
    assert {finding.outcome for finding in findings} == {Outcome.NO_FIGURE}
