# SPDX-License-Identifier: Apache-2.0
"""The figures of a recording, under the names that a benchmark gives them."""

from __future__ import annotations

from itertools import pairwise
import math

import numpy as np

from ..engine.scheduling.timeline import EventKind
from ..figures.latency_fields import growth, kv_reduction
from ..figures.ticks import is_on_time, MAX_OBSERVATION_AGE_MS, spread_of, summarise_ticks
from .recording import Float64Array, Recording

Figures = dict[str, float]


def on_time(table: Float64Array, max_age_ms: float) -> Float64Array:
    """Return 1 for each target that was on time, else 0: [num_ticks]."""
    flags: Float64Array = is_on_time(table[:, 1], table[:, 4], table[:, 2], max_age_ms).astype(
        np.float64
    )
    return flags


def figures_of(recording: Recording, max_age_ms: float = MAX_OBSERVATION_AGE_MS) -> Figures:
    """Return the figures of a recording, those that can be told from it.

    Ticks: all targets recorded while armed, or all where the node never was. KV: at the moment at
    which isolated caches would take most. First token: each dialogue's once.
    """
    figures: Figures = {
        'recording.duration_s': recording.duration_s,
        'recording.reports': float(len(recording.latency_ns)),
        'recording.targets': float(len(recording.tick_ns)),
        'recording.chunks': float(len(recording.chunk_ns)),
    }
    _ticks(figures, recording, max_age_ms)
    _reports(figures, recording)
    _chunks(figures, recording)
    _slices(figures, recording)
    gaps_s = [(later - earlier) * 1e-9 for earlier, later in pairwise(recording.scene_ns)]
    figures['scene.updates'] = float(len(recording.scene_ns))
    _spread(figures, 'scene.period_s', np.array(gaps_s))
    return {name: float(value) for name, value in figures.items() if not math.isnan(value)}


def first_token_ms(recording: Recording) -> tuple[Float64Array, Float64Array]:
    """Return when a dialogue's first-token time appeared (s since the start) and what it was."""
    values = recording.latency('ttft_ms')
    known = np.flatnonzero(~np.isnan(values))
    new = known[np.diff(values[known], prepend=math.nan) != 0.0]
    return recording.seconds(recording.latency_ns)[new], values[new]


def armed_ticks(recording: Recording) -> Float64Array:
    """Return the rows of `tick_table` that count."""
    table = recording.tick_table()
    armed = table[table[:, 3] > 0.0]
    return armed if len(armed) else table


def _ticks(figures: Figures, recording: Recording, max_age_ms: float) -> None:
    table = armed_ticks(recording)
    if not len(table):
        return
    ticks = summarise_ticks(table[:, 0], table[:, 1], table[:, 4], table[:, 2], max_age_ms)
    figures['tick.recorded.sd_ms'] = ticks.lateness_ms.sd
    figures['tick.recorded.p50_ms'] = ticks.lateness_ms.p50
    figures['tick.recorded.p99_ms'] = ticks.lateness_ms.p99
    figures['tick.recorded.worst_ms'] = ticks.lateness_ms.worst
    figures['tick.recorded.on_time'] = ticks.on_time
    figures['tick.recorded.held'] = float(ticks.held)
    figures['tick.recorded.skipped'] = float(ticks.skipped)
    _spread(figures, 'tick.recorded.age_ms', table[:, 2])


def _reports(figures: Figures, recording: Recording) -> None:
    if not recording.latency_ns:
        return
    isolated = np.nan_to_num(recording.latency('kv_bytes_isolated'))
    peak = int(isolated.argmax())
    shared = recording.latency('kv_bytes_shared')
    saved = kv_reduction(shared, isolated)
    figures['kv.bytes.isolated'], figures['kv.bytes.shared'] = isolated[peak], shared[peak]
    # Not kv.bytes.reduction: a benchmark holds three tasks on one frame, a run hardly ever does.
    figures['kv.peak_reduction'] = saved[peak]
    figures['kv.best_reduction'] = max(saved[~np.isnan(saved)], default=math.nan)
    figures['kv.preemptions'] = float(growth(recording.latency('preemptions')).sum())
    waits_ms = recording.latency('action_wait_p99_ms')
    if not np.isnan(waits_ms).all():
        figures['preempt.wait_ms.worst_p99'] = float(np.nanmax(waits_ms))
    _spread(figures, 'dialogue.recorded.ttft_ms', first_token_ms(recording)[1])
    tokens = recording.latency('tokens_per_s')[recording.latency('text_requests') > 0.0]
    if len(tokens):
        figures['dialogue.recorded.tokens_per_s'] = float(np.nanmean(tokens))
    for name in ('vision_ms', 'prefill_ms', 'decode_step_ms', 'observations_per_s'):
        values = recording.latency(name)
        if not np.isnan(values).all():
            figures[f'stages.{name}'] = float(np.nanmedian(values))


def _chunks(figures: Figures, recording: Recording) -> None:
    if len(recording.chunk_ns) < 2:
        return
    span_s = (recording.chunk_ns[-1] - recording.chunk_ns[0]) * 1e-9
    if span_s > 0.0:
        rate = (len(recording.chunk_ns) - 1) / span_s
        figures['action.chunks_per_s'] = rate
        figures['action.actions_per_s'] = rate * recording.action_horizon
    _spread(figures, 'action.pass_ms', np.array([pass_ms for pass_ms, _ in recording.chunks]))
    for name, readings in sorted(recording.camera_ages.items()):
        _spread(figures, f'camera.{name}.age_ms', np.array([age_ms for _, age_ms in readings]))


def _slices(figures: Figures, recording: Recording) -> None:
    rows = recording.timeline()
    if not len(rows):
        return
    figures['timeline.entries'] = float(len(rows))
    lengths_ms = (rows[:, 2] - rows[:, 1]) * 1e-6
    for name, kind in (
        ('preempt.wait_ms', EventKind.ACTION_WAIT),
        ('slices.prefix_ms', EventKind.PREFIX),
        ('slices.dialogue_ms', EventKind.DIALOGUE),
        ('slices.scene_graph_ms', EventKind.SCENE_GRAPH),
    ):
        _spread(figures, name, lengths_ms[rows[:, 0] == kind])


def _spread(figures: Figures, name: str, values: Float64Array) -> None:
    spread = spread_of(values[~np.isnan(values)])
    figures[f'{name}.p50'], figures[f'{name}.p99'] = spread.p50, spread.p99
