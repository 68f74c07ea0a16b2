# SPDX-License-Identifier: Apache-2.0
"""One plot as data: what is drawn, not how."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..figures.thresholds import Level, Threshold
from .history import Float64Array


class Style(Enum):
    """How a series is drawn."""

    LINE = 'line'
    AREA = 'area'  # a line with the ground under it filled
    BAND = 'band'  # an area on top of the band before it
    BAR = 'bar'  # bars of `bar_s` width on top of the bars before it
    STEP = 'step'  # a line that is whole however far its points are apart
    DOTS = 'dots'


@dataclass(frozen=True, slots=True)
class Series:
    """One line, area, band, or row of bars or dots."""

    label: str  # in the legend; empty: not there
    colour: str
    style: Style
    times_s: Float64Array  # before the end of the window, at most 0; bars: their start
    values: Float64Array


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot over the window's time, its values from 0 up."""

    title: str
    unit: str
    seconds: float  # length of the window
    series: tuple[Series, ...]
    headline: str = ''  # the newest figure, beside the title
    level: Level = Level.UNKNOWN  # of the headline
    threshold: Threshold | None = None  # drawn where it is in sight
    bar_s: float = 0.0
    note: str = 'nothing measured'  # shown when there is nothing to draw

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(np.isfinite(series.values).any() for series in self.series)

    def top(self) -> float:
        """Return the largest value to be seen; the first limit is always in sight."""
        stacked = [
            series.values
            for series in self.series
            if series.style in (Style.BAND, Style.BAR) and len(series.values)
        ]
        peaks = [_peak(series.values) for series in self.series]
        if stacked:
            peaks.append(_peak(np.sum(np.nan_to_num(stacked), axis=0)))
        top = max(peaks, default=0.0)
        if self.threshold is not None and self.threshold.lower_is_better:
            top = max(top * 1.05, self.threshold.warn * 1.25)
        return top


def _peak(values: Float64Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else 0.0
