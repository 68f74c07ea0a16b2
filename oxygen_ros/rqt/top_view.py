# SPDX-License-Identifier: Apache-2.0
"""The figures of ~/latency as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
import math

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ..figures.thresholds import Level
from .figures import BY_FIELD, FIGURES, milliseconds, NOTHING
from .history import Feed, Float64Array, Span
from .monitor_model import MonitorModel

_STYLES = {Level.UNKNOWN: 'dim', Level.GOOD: '', Level.WARN: 'yellow', Level.BAD: 'bold red'}
_FEED_STYLES = {Feed.WAITING: 'dim', Feed.LIVE: 'green', Feed.STALE: 'bold red'}
_BLOCKS = '▁▂▃▄▅▆▇█'
_GRAPH_WIDTH = 24
_LINE_FIELDS = (
    'on_time_ratio',
    'not_on_time',
    'jitter_sd_ms',
    'jitter_p99_ms',
    'action_pass_p99_ms',
    'action_wait_p99_ms',
    'ttft_ms',
    'tokens_per_s',
    'chunks_per_s',
    'kv_reduction',
    'camera_age_max_ms',
)


def table(model: MonitorModel, topic: str, course: bool = True) -> Group:
    """Return everything that is known.

    :param course: show the worst and the course of the model's window as well.
    """
    span = model.view()
    feed = model.history.feed()
    head = Text.assemble(
        (topic, 'bold'), '  ', ('● ', _FEED_STYLES[feed]), (model.status(), _FEED_STYLES[feed])
    )
    columns = Table(box=None, pad_edge=False, header_style='dim')
    columns.add_column('')
    columns.add_column('now', justify='right', min_width=10)
    if course:
        columns.add_column(f'worst in {span.seconds:g} s', justify='right', min_width=10)
        columns.add_column(f'last {span.seconds:g} s', no_wrap=True)
    for figure in FIGURES:
        if span.newest is None:
            columns.add_row(figure.label, NOTHING)
            continue
        values = figure.values(span.rows)
        now, worst = float(values[-1]), figure.worst(values)
        live = feed is Feed.LIVE
        cells = [Text(figure.text(now), _STYLES[figure.level(now)] if live else 'dim')]
        if course:
            cells += [
                Text(figure.text(worst), _STYLES[figure.level(worst)]),
                Text(graph(span, values), 'blue' if live else 'dim'),
            ]
        columns.add_row(figure.label, *cells)
    for name, (_, ages_ms) in sorted(span.cameras.items()):
        age_ms = float(ages_ms[-1])
        level = BY_FIELD['camera_age_max_ms'].level(age_ms)
        columns.add_row(f'camera {name}', Text(milliseconds(age_ms), _STYLES[level]))
    return Group(head, columns)


def line(model: MonitorModel) -> str:
    """Return the newest figures in one line, as `name=value` with the message's field names."""
    span = model.view()
    if span.newest is None or model.history.feed() is not Feed.LIVE:
        return model.status()
    parts = []
    for field in _LINE_FIELDS:
        value = float(BY_FIELD[field].values(span.rows[-1:])[0])
        parts.append(f'{field}={_plain(value)}')
    return ' '.join(parts)


def graph(span: Span, values: Float64Array) -> str:
    """Return the course of a figure as blocks from 0 to its largest; a blank where unknown."""
    places = np.floor((span.times_s / span.seconds + 1.0) * _GRAPH_WIDTH).astype(np.int64)
    heights = np.full(_GRAPH_WIDTH, math.nan)
    for place, value in zip(np.clip(places, 0, _GRAPH_WIDTH - 1), values):
        heights[place] = np.fmax(heights[place], value)
    return _blocks(heights)


def _blocks(heights: Iterable[float]) -> str:
    known = [height for height in heights if not math.isnan(height)]
    top = max(known, default=0.0)
    text = ''
    for height in heights:
        if math.isnan(height):
            text += ' '
        else:
            share = height / top if top > 0.0 else 0.0
            text += _BLOCKS[min(len(_BLOCKS) - 1, max(0, int(share * len(_BLOCKS))))]
    return text


def _plain(value: float) -> str:
    return 'nan' if math.isnan(value) else f'{value:.4g}' if value < 1e6 else f'{value:.0f}'
