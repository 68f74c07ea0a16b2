# SPDX-License-Identifier: Apache-2.0
"""The figures of a run under load, from what its client saw."""

from __future__ import annotations

import pytest

from oxygen_ros.bench.load_figures import tick_figures
from oxygen_ros.errors import OxygenError
from oxygen_ros.nodes.clients.load_client import LoadRun

MAX_AGE_MS = 400.0


def record(ticks: list[int], duration_s: float, held: int = 0) -> LoadRun:
    """Make a recording whose first `held` ticks are held and whose others are all right."""
    return LoadRun(
        duration_s,
        ticks,
        [0.1] * len(ticks),
        [index < held for index in range(len(ticks))],
        [30.0] * len(ticks),
    )


@pytest.mark.parametrize('num_ticks', [498, 499, 500, 501])
def test_every_tick_of_the_time_was_on_time(num_ticks: int):
    figures = tick_figures(record(list(range(7, 7 + num_ticks)), 10.0), MAX_AGE_MS)
    assert figures['on_time'] == 1.0
    assert figures['skipped'] == 0


def test_skipped_deadlines_are_not_on_time():
    ticks = [tick for tick in range(500) if tick not in (100, 101, 300)]
    figures = tick_figures(record(ticks, 10.0, held=7), MAX_AGE_MS)
    assert figures['skipped'] == 3
    assert figures['on_time'] == 490 / 500


def test_a_node_that_fell_silent_was_not_on_time():
    figures = tick_figures(record(list(range(250)), 10.0), MAX_AGE_MS)
    assert figures['on_time'] == 250 / 498


def test_no_target_at_all_is_an_error():
    with pytest.raises(OxygenError, match='expected targets of the node, got none in 10 s'):
        tick_figures(record([], 10.0), MAX_AGE_MS)
