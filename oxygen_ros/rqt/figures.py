# SPDX-License-Identifier: Apache-2.0
"""The figures that are shown as numbers: where each comes from, its text and its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import math

import numpy as np

from ..figures.latency_fields import COLUMN, kv_reduction
from ..figures.thresholds import judge, Level
from .model import Float64Array

NOTHING = '--'


def number(value: float, unit: str = '') -> str:
    """Return a value with three digits that matter, or a dash for NaN."""
    if math.isnan(value):
        return NOTHING
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f'{value:,.{digits}f}{unit and " " + unit}'


def milliseconds(value: float) -> str:
    """Return milliseconds as text, in seconds from 10 s on."""
    return number(value * 1e-3, 's') if value >= 10_000.0 else number(value, 'ms')


def count(value: float) -> str:
    """Return a whole number as text."""
    return NOTHING if math.isnan(value) else f'{value:,.0f}'


def percent(value: float) -> str:
    """Return a share as text; never rounded up to 100 %."""
    if math.isnan(value):
        return NOTHING
    return '100 %' if value >= 1.0 else f'{min(100.0 * value, 99.99):.2f} %'


def size(value: float) -> str:
    """Return bytes as text."""
    for unit in ('B', 'KiB', 'MiB'):
        if not value >= 1024.0:
            return number(value, unit)
        value /= 1024.0
    return number(value, 'GiB')


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a report."""

    label: str
    field: str  # of LatencyReport, or a name of its own where it is computed
    text: Callable[[float], str]
    falls_when_worse: bool = False

    def values(self, rows: Float64Array) -> Float64Array:
        """Return it for each report: [n] of [n, num_fields]."""
        return _COMPUTED[self.field](rows) if self.field in _COMPUTED else column(rows, self.field)

    def level(self, value: float) -> Level:
        """Return how good a value is."""
        return judge(self.field, value)

    def worst(self, values: Float64Array) -> float:
        """Return the worst of some values; NaN where none is known."""
        known = values[~np.isnan(values)]
        if not len(known):
            return math.nan
        return float(known.min() if self.falls_when_worse else known.max())


def column(rows: Float64Array, field: str) -> Float64Array:
    """Return one field of each report."""
    return rows[:, COLUMN[field]]


def not_on_time(rows: Float64Array) -> Float64Array:
    """Return the deadlines since activation that were not met on time, whatever the cause."""
    due = column(rows, 'ticks') + column(rows, 'overruns')
    return np.round(due * (1.0 - column(rows, 'on_time_ratio')))


def _kv_reduction(rows: Float64Array) -> Float64Array:
    return kv_reduction(column(rows, 'kv_bytes_shared'), column(rows, 'kv_bytes_isolated'))


_COMPUTED: dict[str, Callable[[Float64Array], Float64Array]] = {
    'not_on_time': not_on_time,
    'kv_reduction': _kv_reduction,
}

FIGURES = (
    Figure('on time', 'on_time_ratio', percent, falls_when_worse=True),
    Figure('not on time', 'not_on_time', count),
    Figure('held', 'held', count),
    Figure('skipped', 'overruns', count),
    Figure('jitter sd', 'jitter_sd_ms', milliseconds),
    Figure('jitter p99', 'jitter_p99_ms', milliseconds),
    Figure('jitter worst', 'jitter_max_ms', milliseconds),
    Figure('observation age p50', 'observation_age_p50_ms', milliseconds),
    Figure('observation age p99', 'observation_age_p99_ms', milliseconds),
    Figure('oldest camera', 'camera_age_max_ms', milliseconds),
    Figure('vision, one camera', 'vision_ms', milliseconds),
    Figure('prefill', 'prefill_ms', milliseconds),
    Figure('action pass', 'action_pass_ms', milliseconds),
    Figure('action pass p99', 'action_pass_p99_ms', milliseconds),
    Figure('action waits p99', 'action_wait_p99_ms', milliseconds),
    Figure('decode step', 'decode_step_ms', milliseconds),
    Figure('first token', 'ttft_ms', milliseconds),
    Figure('tokens/s', 'tokens_per_s', number, falls_when_worse=True),
    Figure('chunks/s', 'chunks_per_s', number, falls_when_worse=True),
    Figure('actions/s', 'actions_per_s', number, falls_when_worse=True),
    Figure('observations/s', 'observations_per_s', number, falls_when_worse=True),
    Figure('text requests', 'text_requests', count),
    Figure('text preemptions', 'preemptions', count),
    Figure('KV of prefixes', 'kv_bytes_prefix', size),
    Figure('KV of actions', 'kv_bytes_action', size),
    Figure('KV of text', 'kv_bytes_text', size),
    Figure('KV shared', 'kv_bytes_shared', size),
    Figure('KV isolated', 'kv_bytes_isolated', size),
    Figure('KV saved', 'kv_reduction', percent, falls_when_worse=True),
    Figure('KV blocks free', 'kv_blocks_free', count, falls_when_worse=True),
)
BY_FIELD = {figure.field: figure for figure in FIGURES}
