# SPDX-License-Identifier: Apache-2.0
"""What a unit of work will cost: measured online, or a table for schedules that repeat."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Protocol

from .work import UnitKey

_NUM_NEWEST = 8  # in a row without a slow one: what made units slow is over


class CostModel(Protocol):
    """Estimates of unit costs, in ns."""

    def estimate_ns(self, key: UnitKey) -> int:
        """Return what a unit of this key takes at most, but for rare cases."""
        ...

    def newest_ns(self, key: UnitKey) -> int:
        """Return what the last unit of this key took; the estimate where none was seen."""
        ...

    def observe(self, key: UnitKey, duration_ns: int) -> None:
        """Learn from one finished unit."""
        ...


class TableCostModel:
    """Fixed costs: a table by key, else by kind (size 0), else a default.

    Used for deterministic schedules, where time is what the table says.
    """

    def __init__(self, table: Mapping[UnitKey, int], default_ns: int = 1_000_000) -> None:
        if default_ns <= 0 or any(cost <= 0 for cost in table.values()):
            raise ValueError('cost table: expected costs above 0 ns')
        self._table = dict(table)
        self._default_ns = default_ns

    def estimate_ns(self, key: UnitKey) -> int:
        cost = self._table.get(key)
        if cost is None:
            cost = self._table.get(UnitKey(key.kind, 0), self._default_ns)
        return cost

    def newest_ns(self, key: UnitKey) -> int:
        return self.estimate_ns(key)

    def observe(self, key: UnitKey, duration_ns: int) -> None:
        """Do nothing: the table is fixed."""


class _Window:
    """The last durations of one key, in order of arrival and sorted."""

    __slots__ = ('estimate_ns', 'recent', 'sorted')

    def __init__(self, size: int) -> None:
        self.recent: deque[int] = deque(maxlen=size)
        self.sorted: list[int] = []
        self.estimate_ns = 0

    def add(self, duration_ns: int, quantile: float) -> None:
        if len(self.recent) == self.recent.maxlen:
            del self.sorted[bisect_left(self.sorted, self.recent[0])]
        newest_before = self.recent[-1] if self.recent else duration_ns
        self.recent.append(duration_ns)
        insort(self.sorted, duration_ns)
        rank = min(int(quantile * len(self.sorted)), len(self.sorted) - 1)
        slowest_ns = max(islice(reversed(self.recent), _NUM_NEWEST))
        # Two slow ones in a row are a change of regime, not a hiccup: do not wait for the quantile
        # to follow.
        self.estimate_ns = max(min(self.sorted[rank], slowest_ns), min(newest_before, duration_ns))


class OnlineCostModel:
    """A windowed quantile per key, but no more than the newest few took.

    So a single hiccup raises it hardly, and a disturbance that is over is soon forgotten.

    A key never seen is estimated from the nearest size of its kind, scaled up by size, else from
    the prior table, else by the default. A prior is dropped at the first observation of its key,
    so a wrong one misleads once.

    :param quantile: of the window, 0 to 1.
    :param window: observations that count.
    """

    def __init__(
        self,
        prior: Mapping[UnitKey, int] | None = None,
        *,
        quantile: float = 0.9,
        window: int = 32,
        default_ns: int = 1_000_000,
    ) -> None:
        if not 0.0 < quantile < 1.0:
            raise ValueError(f'quantile: expected between 0 and 1, got {quantile}')
        if window < 1:
            raise ValueError(f'window: expected at least 1, got {window}')
        self._prior = TableCostModel(prior or {}, default_ns)
        self._has_prior = frozenset(prior or ())
        self._quantile = quantile
        self._window = window
        self._windows: dict[UnitKey, _Window] = {}
        self._by_kind: dict[str, list[UnitKey]] = {}
        self.recording = True  # off while warming up: those durations say nothing of later ones

    def estimate_ns(self, key: UnitKey) -> int:
        window = self._windows.get(key)
        if window is not None:
            return window.estimate_ns
        if key in self._has_prior:
            return self._prior.estimate_ns(key)
        known = self._by_kind.get(key.kind)
        if known:
            nearest = min(known, key=lambda other: abs(other.size - key.size))
            scale = max(1.0, key.size / max(1, nearest.size))
            return int(self._windows[nearest].estimate_ns * scale)
        return self._prior.estimate_ns(key)

    def newest_ns(self, key: UnitKey) -> int:
        window = self._windows.get(key)
        return self.estimate_ns(key) if window is None else window.recent[-1]

    def observe(self, key: UnitKey, duration_ns: int) -> None:
        if not self.recording:
            return
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window(self._window)
            self._by_kind.setdefault(key.kind, []).append(key)
        window.add(duration_ns, self._quantile)

    def median_ns(self, key: UnitKey) -> int | None:
        """Return the median of the window; None: never seen."""
        window = self._windows.get(key)
        return None if window is None else window.sorted[len(window.sorted) // 2]

    def observed(self) -> list[UnitKey]:
        """Return the keys observed so far."""
        return list(self._windows)
