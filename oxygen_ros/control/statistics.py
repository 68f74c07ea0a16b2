# SPDX-License-Identifier: Apache-2.0
"""Figures of the tick: cheap to record, computed only when asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..figures.ticks import ON_TIME_MS, on_time_ratio, spread_of
from .clock import NS_PER_MS

CAPACITY = 65_536  # ticks; 21 minutes at 50 Hz, 1 MiB


@dataclass(frozen=True, slots=True)
class TickFigures:
    """Figures over some ticks; NaN where nothing was measured.

    `on_time_ratio` counts a skipped deadline as one that was not on time.
    """

    ticks: int
    held: int  # armed ticks that held
    overruns: int  # deadlines skipped
    on_time: int
    on_time_ratio: float  # on_time / (ticks + overruns), 0 to 1
    lateness_mean_ms: float
    lateness_sd_ms: float  # the jitter
    lateness_p50_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float
    observation_age_p50_ms: float  # of the ticks that did not hold
    observation_age_p99_ms: float
    hold_reasons: dict[str, int] = field(default_factory=dict)  # since activation


class TickStatistics:
    """Rings of lateness and observation age, and counters, since activation.

    `record` and `reset` belong to the tick's thread, or to one that runs while there is none;
    any thread may ask for figures, which may then miss the tick being recorded.
    """

    def __init__(self, max_observation_age_ns: int, capacity: int = CAPACITY) -> None:
        """Allocate the rings.

        :param max_observation_age_ns: an older observation is not on time, in nanoseconds.
        :param capacity: ticks kept; figures since activation cover at most these, except the
            counters and the worst lateness, which cover all.
        :raises ValueError: a value is not above 0.
        """
        if max_observation_age_ns <= 0:
            raise ValueError(
                f'max_observation_age_ns: expected above 0, got {max_observation_age_ns}'
            )
        if capacity <= 0:
            raise ValueError(f'capacity: expected above 0, got {capacity}')
        self.max_observation_age_ns = max_observation_age_ns
        self._capacity = capacity
        # Written to at once: a page that the kernel gives out at first use costs a tick its time.
        self._lateness_ms = np.full(capacity, 0.0)
        self._age_ms = np.full(capacity, 0.0)  # NaN: held, or no observation
        self._flags = np.full(capacity, 0, dtype=np.uint8)  # bit 0: on time, bit 1: held
        self._skipped = np.full(capacity, 0, dtype=np.int64)  # deadlines skipped before the tick
        self.reset()

    def reset(self) -> None:
        """Begin anew, at activation."""
        self._ticks = 0
        self._held = 0
        self._overruns = 0
        self._on_time = 0
        self._worst_ms = 0.0
        self._next_tick = 0
        self._hold_reasons: Counter[str] = Counter()

    def record(
        self,
        tick: int,
        lateness_ns: int,
        *,
        hold_reason: str = '',
        armed: bool = True,
        observation_age_ns: int | None = None,
    ) -> bool:
        """Count one tick, after its target was published.

        :param tick: its number; a gap to the one before are deadlines skipped.
        :param lateness_ns: from the deadline to publication, in nanoseconds.
        :param hold_reason: of the target; empty: fresh.
        :param armed: a disarmed tick that holds is not counted as held.
        :param observation_age_ns: of the target, in nanoseconds; None: none.
        :return: whether the tick was on time.
        """
        fresh = not hold_reason
        # The scalars of `is_on_time`, without an array for each tick.
        on_time = (
            fresh
            and lateness_ns <= ON_TIME_MS * NS_PER_MS
            and observation_age_ns is not None
            and 0 <= observation_age_ns <= self.max_observation_age_ns
        )
        held = armed and not fresh
        skipped = max(tick - self._next_tick, 0)
        self._next_tick = tick + 1
        index = self._ticks % self._capacity
        lateness_ms = lateness_ns / NS_PER_MS
        self._lateness_ms[index] = lateness_ms
        self._age_ms[index] = (
            observation_age_ns / NS_PER_MS if fresh and observation_age_ns is not None else np.nan
        )
        self._flags[index] = on_time + 2 * held
        self._skipped[index] = skipped
        if held:
            self._held += 1
            self._hold_reasons[hold_reason] += 1
        self._overruns += skipped
        self._on_time += on_time
        if lateness_ms > self._worst_ms:
            self._worst_ms = lateness_ms
        self._ticks += 1  # last: a reader takes only what is complete
        return on_time

    def counts(self) -> tuple[int, int, int, int]:
        """Return ticks, held, overruns and on time since activation; cheap."""
        return self._ticks, self._held, self._overruns, self._on_time

    def total(self) -> TickFigures:
        """Return the figures since activation."""
        ticks = self._ticks
        figures = self._figures(
            min(ticks, self._capacity),
            ticks,
            self._held,
            self._overruns,
            self._on_time,
            self._worst_ms,
        )
        return figures

    def window(self, num_ticks: int) -> TickFigures:
        """Return the figures of the newest ticks.

        :param num_ticks: how many, at most; fewer are taken right after activation.
        :return: the figures.
        """
        num_ticks = min(num_ticks, self._ticks, self._capacity)
        rows = self._newest(num_ticks)
        flags = self._flags[rows]
        worst_ms = float(self._lateness_ms[rows].max()) if num_ticks else 0.0
        return self._figures(
            num_ticks,
            num_ticks,
            int(np.count_nonzero(flags & 2)),
            int(self._skipped[rows].sum()),
            int(np.count_nonzero(flags & 1)),
            worst_ms,
        )

    def _newest(self, num_ticks: int) -> NDArray[np.int64]:
        end = self._ticks
        return np.arange(end - num_ticks, end) % self._capacity

    def _figures(
        self,
        num_rows: int,
        ticks: int,
        held: int,
        overruns: int,
        on_time: int,
        worst_ms: float,
    ) -> TickFigures:
        rows = self._newest(num_rows)
        lateness_ms = spread_of(self._lateness_ms[rows])
        age_ms = self._age_ms[rows]
        ages_ms = spread_of(age_ms[~np.isnan(age_ms)])
        return TickFigures(
            ticks=ticks,
            held=held,
            overruns=overruns,
            on_time=on_time,
            on_time_ratio=on_time_ratio(on_time, ticks, overruns),
            lateness_mean_ms=lateness_ms.mean,
            lateness_sd_ms=lateness_ms.sd,
            lateness_p50_ms=lateness_ms.p50,
            lateness_p99_ms=lateness_ms.p99,
            lateness_max_ms=worst_ms if num_rows else float('nan'),
            observation_age_p50_ms=ages_ms.p50,
            observation_age_p99_ms=ages_ms.p99,
            hold_reasons=dict(self._hold_reasons),
        )
