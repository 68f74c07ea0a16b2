# SPDX-License-Identifier: Apache-2.0
"""Figures of one run under load: of what its client saw, and of what the node left."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

import numpy as np

from ..engine.scheduling.timeline import EventKind
from ..errors import OxygenError
from ..figures.ticks import expected_deadlines, spread_of, summarise_ticks
from ..types import CONTROL_RATE_HZ

if TYPE_CHECKING:
    from ..nodes.clients.load_client import LoadRun


def tick_figures(seen: LoadRun, max_age_ms: float) -> dict[str, Any]:
    """Return the figures of the targets that the client saw.

    :raises OxygenError: no target came at all.
    """
    if not seen.ticks:
        raise OxygenError(f'expected targets of the node, got none in {seen.duration_s:g} s')
    age = np.array(seen.age_ms)
    ticks = summarise_ticks(
        seen.ticks,
        seen.lateness_ms,
        seen.held,
        age,
        max_age_ms,
        expected_deadlines(seen.duration_s, CONTROL_RATE_HZ),
    )
    return {
        'sd_ms': ticks.lateness_ms.sd,
        'p99_ms': ticks.lateness_ms.p99,
        'worst_ms': ticks.lateness_ms.worst,
        'on_time': ticks.on_time,
        'within_1ms': ticks.within_1ms,
        'held': ticks.held,
        'skipped': ticks.skipped,
        'ticks': ticks.ticks,
        'age_ms': _spread(age[age >= 0], 'p50', 'p99'),
    }


def dialogue_figures(seen: LoadRun) -> dict[str, Any]:
    """Return the figures of the answers and scene graphs that the client received."""
    gaps = np.diff(seen.scene_graphs)
    return {
        'ttft_ms': _spread(seen.ttft_ms, 'p50', 'p99'),
        'first_tokens': len(seen.ttft_ms),
        'tokens_per_s': seen.dialogue_tokens / seen.duration_s,
        'scene_graphs': len(seen.scene_graphs),
        'scene_gap_s': _spread(gaps, 'p50', 'worst'),
    }


def engine_figures(run: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the node's own record of the run."""
    rows = np.array(run['timeline'], dtype=np.int64).reshape(-1, 5)
    duration = rows[:, 2] - rows[:, 1]
    waits = duration[rows[:, 0] == EventKind.ACTION_WAIT] * 1e-6
    passes = duration[rows[:, 0] == EventKind.ACTION] * 1e-6
    span_s = (rows[:, 2].max() - rows[:, 1].min()) * 1e-9 if len(rows) else 1.0
    cameras = run['cameras'].values()
    scene = run['scene']
    ingest = [ms for camera in cameras for ms in camera['ingest_ms']]
    return {
        'preempt': {'wait_ms': _spread(waits, 'p50', 'p99')},
        'action': {
            'chunks_per_s': len(passes) / span_s,
            'pass_ms': _spread(passes, 'p50', 'p99'),
        },
        'ingest': {
            'ms': _spread(ingest, 'p50', 'p99'),
            'frames_in': sum(camera['received'] for camera in cameras),
            'frames_out': sum(camera['decoded'] for camera in cameras),
            'superseded': sum(camera['superseded'] for camera in cameras),
            'refused': sum(camera['refused'] for camera in cameras),
            'missed': sum(camera['missed'] for camera in cameras),
            'waiting': sum(camera['waiting'] for camera in cameras),
            'lost': _num_lost(run),
        },
        'scene': {
            'merged': scene['merged'],
            'failed': scene['failed'],
            'skipped': scene['skipped'],
            'unfinished': scene['unfinished'],
            's': _spread(scene['durations_s'], 'p50', 'worst'),
        },
        'written': {
            name: {
                'written': sink['num_written'],
                'lost': sink['num_waiting']
                + sink['num_rejected']
                + sum(sink['num_dropped'].values()),
            }
            for name, sink in run['written'].items()
        },
    }


def _num_lost(run: dict[str, Any]) -> int:
    """Frames sent between the first and the last that came, which neither came nor were counted
    as missed.
    """
    lost = 0
    for name, camera in run['cameras'].items():
        first, last = camera['first_stamp_ns'], camera['last_stamp_ns']
        sent = sum(first <= stamp <= last for stamp in run['sent'][name])
        lost += sent - camera['received'] - camera['missed']
    return lost


def _spread(values: Any, *names: str) -> dict[str, float | None]:
    """Return figures of a spread as JSON has them: None where nothing was measured."""
    spread = spread_of(values)
    return {name: getattr(spread, name) if len(values) else None for name in names}
