# SPDX-License-Identifier: Apache-2.0
"""The monitor's six plots as data: what is drawn, not how, from the reports in view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
import math

import numpy as np

from ..figures.latency_fields import growth
from ..figures.thresholds import judge, Level, Threshold, THRESHOLDS
from ..report import colours
from .figures import BY_FIELD, column, not_on_time, percent, size
from .model import Float64Array, Span

_BINS = (1.0, 5.0, 10.0)  # widths of bars (s)
_MAX_BARS = 80
_SIZES = ((1024.0**3, 'GiB'), (1024.0**2, 'MiB'), (1024.0, 'KiB'), (1.0, 'B'))


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


def jitter(span: Span) -> Plot:
    """Plot lateness of the tick against its deadline, in the last second of each report."""
    return Plot(
        'Tick jitter',
        'ms',
        span.seconds,
        _lines(
            span,
            (
                ('worst', 'jitter_max_ms', colours.GREY),
                ('p99', 'jitter_p99_ms', colours.ORANGE),
                ('sd', 'jitter_sd_ms', colours.BLUE),
            ),
        ),
        *_headline(span, 'jitter_p99_ms', 'p99'),
        THRESHOLDS['jitter_p99_ms'],
    )


def missed(span: Span) -> Plot:
    """Plot deadlines that were not met on time, by cause."""
    rows = span.rows
    skipped, held = growth(column(rows, 'overruns')), growth(column(rows, 'held'))
    missing = growth(not_on_time(rows))
    late = np.clip(np.nan_to_num(missing) - skipped - held, 0.0, None)
    bar_s = next((width for width in _BINS if span.seconds / width <= _MAX_BARS), _BINS[-1])
    series = tuple(
        _bars(label, colour, span, values, bar_s)
        for label, colour, values in (
            ('skipped', colours.LEVELS[Level.BAD], skipped),
            ('held', colours.PURPLE, held),
            ('late or old', colours.ORANGE, late),
        )
    )
    headline, level = _headline(span, 'on_time_ratio', 'on time')
    return Plot(
        'Missed deadlines',
        f'ticks in {bar_s:.0f} s',
        span.seconds,
        series,
        headline,
        level,
        bar_s=bar_s,
    )


def stages(span: Span) -> Plot:
    """Plot the median times of the stages on top of each other."""
    series = _lines(
        span,
        (
            ('vision', 'vision_ms', colours.SKY),
            ('prefill', 'prefill_ms', colours.BLUE),
            ('action pass', 'action_pass_ms', colours.ORANGE),
            ('decode step', 'decode_step_ms', colours.GREEN),
        ),
        Style.BAND,
    )
    return Plot(
        'Stage times',
        'ms',
        span.seconds,
        series,
        *_headline(span, 'action_wait_p99_ms', 'actions wait p99'),
    )


def first_token(span: Span) -> Plot:
    """Plot how long the newest dialogue waited for its first token; each new one is a dot."""
    values = column(span.rows, 'ttft_ms')
    known = np.isfinite(values)
    times_s, values = span.times_s[known], values[known]
    news = np.flatnonzero(np.diff(values, prepend=math.nan) != 0.0)
    ends_s = np.append(times_s[news[1:]], times_s[-1:])
    steps_s = np.column_stack([times_s[news], ends_s]).ravel()
    steps = np.repeat(values[news], 2)
    return Plot(
        'Time to first token',
        'ms',
        span.seconds,
        (
            Series('newest dialogue', colours.PURPLE, Style.STEP, steps_s, steps),
            Series('', colours.PURPLE, Style.DOTS, times_s[news], values[news]),
        ),
        *_headline(span, 'ttft_ms', ''),
        THRESHOLDS['ttft_ms'],
        note='no dialogue yet',
    )


def kv_use(span: Span) -> Plot:
    """Plot KV memory as it is, shared, beside what isolated caches would take."""
    peak = 0.0
    if span.newest is not None:
        both = [column(span.rows, name) for name in ('kv_bytes_isolated', 'kv_bytes_shared')]
        peak = float(np.nan_to_num(np.concatenate(both)).max())
    divisor, unit = next(pair for pair in _SIZES if peak >= pair[0] or pair[0] == 1.0)
    series = (
        Series(
            'isolated',
            colours.GREY,
            Style.LINE,
            span.times_s,
            column(span.rows, 'kv_bytes_isolated') / divisor,
        ),
        Series(
            'shared',
            colours.GREEN,
            Style.AREA,
            span.times_s,
            column(span.rows, 'kv_bytes_shared') / divisor,
        ),
    )
    newest, level = '', Level.UNKNOWN
    if span.newest is not None:
        free = float(column(span.rows, 'kv_blocks_free')[-1])
        shared = float(column(span.rows, 'kv_bytes_shared')[-1])
        saved = float(BY_FIELD['kv_reduction'].values(span.rows)[-1])
        newest = f'{size(shared)}, {percent(saved)} saved'
        level = judge('kv_blocks_free', free)
    return Plot('KV cache', unit, span.seconds, series, newest, level)


def ages(span: Span) -> Plot:
    """Plot how old images and the observations behind the targets are."""
    series = list(
        _lines(
            span,
            (
                ('observation p99', 'observation_age_p99_ms', colours.BLUE),
                ('p50', 'observation_age_p50_ms', colours.SKY),
            ),
        )
    )
    if span.cameras:
        series += [
            Series(
                name,
                colours.SERIES[(1 + index) % len(colours.SERIES)],
                Style.LINE,
                *span.cameras[name],
            )
            for index, name in enumerate(sorted(span.cameras))
        ]
    else:
        series += _lines(span, (('oldest camera', 'camera_age_max_ms', colours.ORANGE),))
    return Plot(
        'Age of what is acted on',
        'ms',
        span.seconds,
        tuple(series),
        *_headline(span, 'camera_age_max_ms', 'oldest camera'),
        THRESHOLDS['camera_age_max_ms'],
    )


PANELS: tuple[Callable[[Span], Plot], ...] = (jitter, missed, stages, first_token, kv_use, ages)


def _lines(
    span: Span, wanted: tuple[tuple[str, str, str], ...], style: Style = Style.LINE
) -> tuple[Series, ...]:
    return tuple(
        Series(label, colour, style, span.times_s, column(span.rows, field))
        for label, field, colour in wanted
    )


def _headline(span: Span, field: str, prefix: str) -> tuple[str, Level]:
    if span.newest is None:
        return '', Level.UNKNOWN
    figure = BY_FIELD[field]
    value = float(figure.values(span.rows)[-1])
    return f'{prefix} {figure.text(value)}'.strip(), figure.level(value)


def _bars(label: str, colour: str, span: Span, values: Float64Array, bar_s: float) -> Series:
    if not len(values):
        return Series(label, colour, Style.BAR, values, values)
    # The bars keep their places on the clock; else counts would wander from bar to bar.
    begun_s = span.end_s % bar_s
    num_bars = math.ceil(span.seconds / bar_s) + 1
    bars = np.floor((span.times_s + begun_s) / bar_s).astype(np.int64) + num_bars - 1
    heights = np.zeros(num_bars)
    np.add.at(heights, np.clip(bars, 0, num_bars - 1), np.nan_to_num(values))
    starts_s = (np.arange(num_bars, dtype=np.float64) - num_bars + 1) * bar_s - begun_s
    return Series(label, colour, Style.BAR, starts_s, heights)


def _peak(values: Float64Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else 0.0
