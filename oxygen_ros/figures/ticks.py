# SPDX-License-Identifier: Apache-2.0
"""When a control tick is on time, how measured values are spread, the figures of a run's ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ON_TIME_MS = 2.0  # a target is on time when published within this of its deadline
SOON_MS = 1.0  # what a tick in a process of its own is held to
MAX_OBSERVATION_AGE_MS = 400.0  # of what may be acted on; each default is this one
# Deadlines at either end of a client's time that may lie outside the run.
_NUM_EDGES = 2


def is_on_time(
    lateness_ms: ArrayLike, is_held: ArrayLike, age_ms: ArrayLike, max_age_ms: float
) -> NDArray[np.bool_]:
    """Return whether targets were on time: fresh, published in time, of a young observation.

    :param lateness_ms: from the deadline to publication.
    :param age_ms: of the observation behind the target; NaN or below 0: there was none.
    """
    lateness, age = np.asarray(lateness_ms), np.asarray(age_ms)
    on_time: NDArray[np.bool_] = (
        ~np.asarray(is_held, dtype=bool)
        & (lateness <= ON_TIME_MS)
        & (age >= 0.0)
        & (age <= max_age_ms)
    )
    return on_time


def on_time_ratio(num_on_time: int, num_ticks: int, num_skipped: int) -> float:
    """Return the share of all deadlines that were met on time; NaN: there was none.

    A skipped deadline is one that was not met.
    """
    num_deadlines = num_ticks + num_skipped
    return num_on_time / num_deadlines if num_deadlines else float('nan')


def percentile(values: ArrayLike, percent: float) -> float:
    """Return a percentile, by linear interpolation; NaN where nothing was measured.

    Of values so few that none lies beyond it, fewer than 100 for the 99th, it is the largest: an
    interpolation would say less than what was seen.
    """
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        return float('nan')
    if array.size * (100.0 - percent) < 100.0:
        return float(array.max())
    return float(np.percentile(array, percent))


@dataclass(frozen=True, slots=True)
class Spread:
    """How measured values are spread; NaN where nothing was measured."""

    mean: float
    sd: float  # of a lateness: the jitter
    p50: float
    p99: float
    worst: float


def spread_of(values: ArrayLike) -> Spread:
    """Return how values are spread."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        return Spread(*(float('nan'),) * 5)
    return Spread(
        float(array.mean()),
        float(array.std()),
        percentile(array, 50.0),
        percentile(array, 99.0),
        float(array.max()),
    )


@dataclass(frozen=True, slots=True)
class TickSummary:
    """The figures of the ticks of one run."""

    ticks: int  # targets that came
    skipped: int  # deadlines without one
    held: int
    on_time: float  # share of all deadlines, 0 to 1
    within_1ms: float  # share of all deadlines that were met within 1 ms, held or not
    lateness_ms: Spread


def summarise_ticks(
    numbers: Sequence[int] | NDArray[Any],
    lateness_ms: ArrayLike,
    is_held: ArrayLike,
    age_ms: ArrayLike,
    max_age_ms: float,
    num_expected: int = 0,
) -> TickSummary:
    """Return the figures of ticks as somebody saw them, in order.

    Deadlines without a target are told from the gaps between the numbers.

    :param numbers: of the ticks, as the node counts them.
    :param num_expected: deadlines that the time had; what fell silent leaves no gap.
    """
    lateness = np.asarray(lateness_ms, dtype=np.float64)
    num_ticks = len(lateness)
    steps = np.diff(np.asarray(numbers, dtype=np.int64))
    num_skipped = int((steps[steps > 1] - 1).sum())
    num_skipped = max(num_skipped, num_expected - num_ticks)
    num_on_time = int(is_on_time(lateness, is_held, age_ms, max_age_ms).sum())
    num_soon = int((lateness <= SOON_MS).sum())
    return TickSummary(
        ticks=num_ticks,
        skipped=num_skipped,
        held=int(np.asarray(is_held, dtype=bool).sum()),
        on_time=on_time_ratio(num_on_time, num_ticks, num_skipped),
        within_1ms=on_time_ratio(num_soon, num_ticks, num_skipped),
        lateness_ms=spread_of(lateness),
    )


def expected_deadlines(duration_s: float, rate_hz: float) -> int:
    """Return how many deadlines a client's time has for certain."""
    return max(round(duration_s * rate_hz) - _NUM_EDGES, 0)
