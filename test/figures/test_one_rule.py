# SPDX-License-Identifier: Apache-2.0
"""A figure has one rule: whoever shows it comes to the same number."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from oxygen_ros.bench.gates import judge
from oxygen_ros.bench.load_figures import tick_figures
from oxygen_ros.control import TickStatistics
from oxygen_ros.demo.figures import DemoRun, summarise
from oxygen_ros.figures.claims import CLAIM, CLAIMS, compare, Outcome
from oxygen_ros.figures.ticks import percentile, spread_of
from oxygen_ros.nodes.clients.load_client import LoadRun
from oxygen_ros.report.recorded_figures import figures_of
from oxygen_ros.report.recording import Recording

NUM_DEADLINES = 500
PERIOD_NS = 20_000_000
AGE_MS, MAX_AGE_MS = 30.0, 400.0


class Tick:
    """One tick as everybody sees it."""

    def __init__(self, number: int, lateness_ms: float, held: bool, age_ms: float) -> None:
        self.number, self.lateness_ms, self.held, self.age_ms = number, lateness_ms, held, age_ms


def node(ticks: list[Tick]) -> float:
    """Return the share that the node reports on ~/latency."""
    statistics = TickStatistics(round(MAX_AGE_MS * 1e6))
    for tick in ticks:
        statistics.record(
            tick.number,
            round(tick.lateness_ms * 1e6),
            hold_reason='no_chunk' if tick.held else '',
            observation_age_ns=round(tick.age_ms * 1e6),
        )
    return statistics.total().on_time_ratio


def demo(ticks: list[Tick]) -> float:
    """Return the share in the demo's table."""
    run = DemoRun(NUM_DEADLINES * 0.02, MAX_AGE_MS * 1e-3)
    for tick in ticks:
        run.add_tick(
            tick.number,
            tick.number * PERIOD_NS,
            tick.held,
            'no_chunk' if tick.held else '',
            tick.lateness_ms * 1e-3,
            tick.age_ms * 1e-3,
        )
    return summarise(run).on_time


def bench(ticks: list[Tick]) -> float:
    """Return the share in the benchmark's JSON."""
    recording = LoadRun(
        NUM_DEADLINES * 0.02,
        [tick.number for tick in ticks],
        [tick.lateness_ms for tick in ticks],
        [tick.held for tick in ticks],
        [tick.age_ms for tick in ticks],
    )
    return tick_figures(recording, MAX_AGE_MS)['on_time']


def report(ticks: list[Tick]) -> float:
    """Return the share on the page of a recording."""
    recording = Recording(Path('made'), 'oxygen')
    recording.tick_ns = [tick.number * PERIOD_NS for tick in ticks]
    recording.ticks = [
        (tick.number, tick.lateness_ms, tick.age_ms, True, tick.held) for tick in ticks
    ]
    return figures_of(recording, MAX_AGE_MS)['tick.recorded.on_time']


def run_of(step: int, late: int = 0, held: int = 0, old: int = 0) -> list[Tick]:
    """Return every `step`-th tick; the first ones late, the next held, the next too old."""
    ticks = [Tick(number, 0.1, False, AGE_MS) for number in range(0, NUM_DEADLINES - 1, step)]
    for index, tick in enumerate(ticks):
        if index < late:
            tick.lateness_ms = 2.5
        elif index < late + held:
            tick.held = True
        elif index < late + held + old:
            tick.age_ms = MAX_AGE_MS + 1.0
    return ticks


@pytest.mark.parametrize('path', [node, demo, bench, report])
@pytest.mark.parametrize(
    ('run', 'on_time'),
    [
        ({'step': 1}, 499 / 499),
        ({'step': 2}, 250 / 499),  # every second deadline skipped
        ({'step': 1, 'late': 10, 'held': 20, 'old': 30}, 439 / 499),
        ({'step': 2, 'late': 25}, 225 / 499),
    ],
)
def test_on_time_is_the_same_share_of_all_deadlines_everywhere(path, run, on_time):
    assert path(run_of(**run)) == pytest.approx(on_time, abs=1e-9)


def test_no_tick_at_all_is_no_share_and_where_there_should_have_been_some_it_is_zero():
    assert np.isnan(node([]))
    assert demo([]) == 0.0


GATES = {
    'on_time': ('ticks on time', 'tick.on_time'),
    'jitter_sd': ('tick jitter sd', 'tick.sd_ms'),
    'action_wait': ('wait behind a slice, p99', 'preempt.wait_ms.p99'),
    'ttft_p50': ('first token, p50', 'dialogue.ttft_ms.p50'),
    'ttft_p99': ('first token, p99', 'dialogue.ttft_ms.p99'),
    'cycle_speedup': ('three-task cycle, over isolated+fifo', 'cycle.speedup'),
    'kv_saved': ('KV memory saved', 'kv.reduction'),
}


@pytest.mark.parametrize('key', GATES)
@pytest.mark.parametrize('bare_sd_ms', [0.1, 0.5])
@pytest.mark.parametrize('kv_limit', [0.613, 0.7])
@pytest.mark.parametrize('side', [-1e-6, 1e-6])
def test_a_gate_of_the_benchmark_and_the_claim_in_the_report_agree(
    key, bare_sd_ms, kv_limit, side
):
    claim, (gate, place) = CLAIM[key], GATES[key]
    machine = {
        'tick.bare.sd_ms': bare_sd_ms,
        'tick.bare.p99_ms': 2.0 * bare_sd_ms,
        'kv.limit': kv_limit,
    }
    value = claim.limit_for(machine)[0] + side
    content: dict = {
        'tick': {
            'bare': {'sd_ms': bare_sd_ms, 'p99_ms': 2.0 * bare_sd_ms},
            'on_time': 1.0,
            'sd_ms': 0.0,
        },
        'preempt': {'wait_ms': {'p99': 0.0}},
        'dialogue': {'ttft_ms': {'p50': 0.0, 'p99': 0.0}},
        'scene': {'s': {'worst': 0.0}, 'failed': 0, 'skipped': 0},
        'written': {},
        'ingest': {'lost': 0, 'ms': {'p99': 0.0}},
        'cycle': {'speedup': 3.0, 'predicted_speedup': 3.0},
        'kv': {'reduction': 0.65, 'limit': kv_limit},
    }
    *path, name = place.split('.')
    inner = content
    for part in path:
        inner = inner[part]
    inner[name] = value
    holds = next(found.holds for found in judge(content, [content], [], 2.0) if found.name == gate)
    shown = next(
        found for found in compare({claim.names[0]: value, **machine}) if found.claim is claim
    )
    assert holds == (shown.outcome is Outcome.MET) == ((side < 0.0) == claim.at_most)


def test_the_gates_have_the_limits_that_they_always_had():
    quiet = {'tick.bare.sd_ms': 0.03, 'tick.bare.p99_ms': 0.26, 'kv.limit': 0.6134}
    limits = {key: CLAIM[key].limit_for(quiet)[0] for key in GATES}
    assert limits == pytest.approx(
        {
            'on_time': 0.994,
            'jitter_sd': 0.4,
            'action_wait': 3.76,
            'ttft_p50': 200.0,
            'ttft_p99': 400.0,
            'cycle_speedup': 2.0,
            'kv_saved': 0.6084,
        }
    )


def test_of_few_values_the_99th_percentile_is_the_largest():
    assert np.isnan(percentile([], 99.0))
    for num in (1, 2, 50, 99):
        assert percentile([1.0] * (num - 1) + [9.0], 99.0) == 9.0
    many = np.arange(100.0)
    assert percentile(many, 99.0) == np.percentile(many, 99.0) < 99.0
    assert percentile([1.0, 2.0], 50.0) == 1.5  # a median is one from two values on
    assert percentile([3.0], 50.0) == 3.0


def test_nothing_measured_is_no_figure():
    assert all(np.isnan(value) for value in astuple(spread_of([])))
    spread = astuple(spread_of([1.0, 2.0, 6.0]))
    assert spread == pytest.approx((3.0, (14.0 / 3.0) ** 0.5, 2.0, 6.0, 6.0))


def test_each_claim_has_a_key_of_its_own():
    assert len(CLAIM) == len(CLAIMS)
