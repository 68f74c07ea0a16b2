# SPDX-License-Identifier: Apache-2.0
"""The reports of the last minutes, the window on them that is shown, and all of them as CSV."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
import csv
from dataclasses import dataclass
from enum import Enum
import math
from pathlib import Path
import time

import numpy as np
from numpy.typing import NDArray

from ..figures.latency_fields import FIELDS

Float64Array = NDArray[np.float64]

DEFAULT_TOPIC = '/oxygen/latency'
WINDOWS_S = (10.0, 30.0, 60.0, 300.0, 600.0)
DEFAULT_WINDOW_S = 60.0
CAPACITY = 6000  # reports; 10 minutes at 10 Hz, 1.3 MB
CAMERA_CAPACITY = 600  # readings of a camera's age; 10 minutes at 1 Hz
MAX_CAMERAS = 16
STALE_AFTER_S = 3.0  # 30 reports missing; with the pace of redrawing it shows well within 5 s


class Feed(Enum):
    """Whether reports come."""

    WAITING = 'waiting'  # none so far
    LIVE = 'live'
    STALE = 'stale'


@dataclass(frozen=True, slots=True)
class Span:
    """Reports between two times; times in seconds before the end, so at most 0."""

    seconds: float
    end_s: float  # on the watcher's clock
    times_s: Float64Array  # [n]
    rows: Float64Array  # [n, num_fields]
    cameras: dict[str, tuple[Float64Array, Float64Array]]  # by name: times (s), ages (ms)

    @property
    def newest(self) -> Float64Array | None:
        """The newest report, or None."""
        return self.rows[-1] if len(self.rows) else None


class LatencyHistory:
    """Keeps what came, in a ring buffer; the thread that draws adds and reads.

    :param clock: seconds on a steady clock.
    """

    def __init__(
        self, capacity: int = CAPACITY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        self._rows = np.full((capacity, len(FIELDS)), math.nan)
        self._times_s = np.zeros(capacity)
        self._stamps_ns = np.zeros(capacity, dtype=np.int64)
        self._written = 0
        self._cameras: dict[str, deque[tuple[float, float]]] = {}

    def __len__(self) -> int:
        return min(self._written, len(self._rows))

    def add(self, row: Float64Array, stamp_ns: int) -> None:
        """Add a report that came just now (ROS time of its header in ns)."""
        place = self._written % len(self._rows)
        self._rows[place] = row
        self._times_s[place] = self.clock()
        self._stamps_ns[place] = stamp_ns
        self._written += 1

    def add_camera_ages(self, ages_ms: Mapping[str, float]) -> None:
        """Add the age of each camera's newest image (ms), read just now."""
        now_s = self.clock()
        for name, age_ms in ages_ms.items():
            if name not in self._cameras and len(self._cameras) < MAX_CAMERAS:
                self._cameras[name] = deque(maxlen=CAMERA_CAPACITY)
            if name in self._cameras:
                self._cameras[name].append((now_s, age_ms))

    def clear(self) -> None:
        """Forget everything."""
        self._written = 0
        self._cameras.clear()

    def silence_s(self) -> float:
        """Return the seconds since the newest report; infinite without one."""
        if not self._written:
            return math.inf
        return self.clock() - float(self._times_s[(self._written - 1) % len(self._rows)])

    def feed(self) -> Feed:
        """Return whether reports come."""
        if not self._written:
            return Feed.WAITING
        return Feed.STALE if self.silence_s() > STALE_AFTER_S else Feed.LIVE

    def span(self, seconds: float, end_s: float | None = None) -> Span:
        """Return the reports of the last seconds.

        :param end_s: the end, on the clock; None: now.
        """
        end_s = self.clock() if end_s is None else end_s
        order = self._order()
        times_s = self._times_s[order]
        inside = (times_s >= end_s - seconds) & (times_s <= end_s)
        cameras = {}
        for name, readings in self._cameras.items():
            pairs = [pair for pair in readings if end_s - seconds <= pair[0] <= end_s]
            if pairs:
                array = np.array(pairs)
                cameras[name] = (array[:, 0] - end_s, array[:, 1])
        return Span(seconds, end_s, times_s[inside] - end_s, self._rows[order[inside]], cameras)

    def stamps_s(self) -> Float64Array:
        """Return the header stamps of all reports kept, oldest first (ROS time, s)."""
        return self._stamps_ns[self._order()].astype(np.float64) * 1e-9

    def everything(self) -> Span:
        """Return all reports kept."""
        return self.span(math.inf)

    def _order(self) -> NDArray[np.int64]:
        first = max(0, self._written - len(self._rows))
        return np.arange(first, self._written) % len(self._rows)


class MonitorModel:
    """State of one monitor, without Qt; belongs to the thread that draws.

    Paused, reports are still taken in, and the view stays where it was.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.history = LatencyHistory(clock=clock)
        self.window_s = DEFAULT_WINDOW_S
        self._paused_at_s: float | None = None

    @property
    def paused(self) -> bool:
        """Whether the view stands still."""
        return self._paused_at_s is not None

    def pause(self, paused: bool) -> None:
        """Stop the view where it is, or let it follow again."""
        if paused != self.paused:
            self._paused_at_s = self.history.clock() if paused else None

    def clear(self) -> None:
        """Forget all reports."""
        self.history.clear()

    def view(self) -> Span:
        """Return the reports to show."""
        return self.history.span(self.window_s, self._paused_at_s)

    def status(self) -> str:
        """Return one line on whether reports come."""
        feed = self.history.feed()
        if feed is Feed.WAITING:
            return 'waiting for the first report'
        if feed is Feed.STALE:
            return f'stale: no report for {self.history.silence_s():.0f} s'
        times_s = self.history.span(2.0).times_s
        line = 'live'
        if len(times_s) > 1:
            line += f', {(len(times_s) - 1) / (times_s[-1] - times_s[0]):.0f} reports/s'
        return f'paused ({line})' if self.paused else line


def write_csv(path: str | Path, history: LatencyHistory) -> int:
    """Write one line for each report kept, oldest first; return how many.

    Columns: header stamp (ROS time, s), the fields of the message, the age of each camera as last
    read by then (ms). A figure that was not measured is empty.

    :raises OSError: the file cannot be written.
    """
    span = history.everything()
    cameras = sorted(span.cameras)
    with Path(path).open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['stamp_s', *FIELDS, *(f'camera_age_ms.{name}' for name in cameras)])
        stamps_s = history.stamps_s()
        for stamp_s, time_s, row in zip(stamps_s, span.times_s, span.rows):
            ages_ms = []
            for name in cameras:
                times_s, values = span.cameras[name]
                place = int(np.searchsorted(times_s, time_s, side='right')) - 1
                ages_ms.append(float(values[place]) if place >= 0 else float('nan'))
            cells = ['' if np.isnan(value) else repr(float(value)) for value in (*row, *ages_ms)]
            writer.writerow([f'{stamp_s:.9f}', *cells])
    return len(span.rows)
