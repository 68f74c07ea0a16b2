# SPDX-License-Identifier: Apache-2.0
"""A timeline as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.scheduling.timeline import EventKind

TraceEvent = dict[str, Any]

ENGINE_PID = 1  # the engine's tracks; figures from a recording have processes of their own

# Track of each kind, from the top, and what the entry's detail is.
_TRACKS = {
    EventKind.ACTION: ('action pass', 'observation_id'),
    EventKind.ACTION_WAIT: ('action waits for a slice', 'observation_id'),
    EventKind.PREFIX: ('prefix slice', 'observation_id'),
    EventKind.DIALOGUE: ('dialogue slice', 'rows'),
    EventKind.SCENE_GRAPH: ('scene graph slice', 'rows'),
}


def write_trace(
    path: str | Path, timeline_rows: NDArray[np.int64], more_events: Iterable[TraceEvent] = ()
) -> None:
    """Write what ran when.

    :param timeline_rows: `Timeline.snapshot()`: [num_events, 5] kind, start (ns), end (ns), units,
        detail.
    :param more_events: further events, with times from the same zero as the rows (us).
    :raises ValueError: the rows are not of that shape.
    """
    events = [*timeline_events(timeline_rows), *more_events]
    write_events(path, events)


def timeline_events(
    timeline_rows: NDArray[np.int64], zero_ns: int | None = None
) -> list[TraceEvent]:
    """Return one complete event for each row, a track for each kind.

    :param zero_ns: time that becomes 0 of the trace; None: the first start.
    """
    rows = np.asarray(timeline_rows)
    if rows.ndim != 2 or rows.shape[1] != 5:
        raise ValueError(f'timeline rows: expected [num_events, 5], got {list(rows.shape)}')
    if not len(rows):
        return []
    if zero_ns is None:
        zero_ns = int(rows[:, 1].min())
    events = [process_name(ENGINE_PID, 'engine')]
    events += [track_name(ENGINE_PID, int(kind), _TRACKS[kind][0]) for kind in EventKind]
    for kind, start_ns, end_ns, units, detail in rows.tolist():
        name, meaning = _TRACKS[EventKind(kind)]
        events.append(
            slice_event(
                ENGINE_PID,
                kind,
                name,
                start_ns - zero_ns,
                end_ns - start_ns,
                {'units': units, meaning: detail},
            )
        )
    return events


def slice_event(
    pid: int,
    tid: int,
    name: str,
    start_ns: int,
    duration_ns: int,
    details: dict[str, Any] | None = None,
) -> TraceEvent:
    """Return something that took time, on track `tid`."""
    return {
        'ph': 'X',
        'pid': pid,
        'tid': tid,
        'name': name,
        'cat': 'oxygen',
        'ts': start_ns / 1e3,
        'dur': duration_ns / 1e3,
        'args': details or {},
    }


def counter_event(pid: int, name: str, time_ns: int, values: dict[str, float]) -> TraceEvent:
    """Return figures of one moment; each name is one graph, with a line for each value."""
    return {'ph': 'C', 'pid': pid, 'name': name, 'ts': time_ns / 1e3, 'args': values}


def process_name(pid: int, name: str) -> TraceEvent:
    """Return the event that names a group of tracks."""
    return {'ph': 'M', 'pid': pid, 'name': 'process_name', 'args': {'name': name}}


def track_name(pid: int, tid: int, name: str) -> TraceEvent:
    """Return the event that names a track."""
    return {'ph': 'M', 'pid': pid, 'tid': tid, 'name': 'thread_name', 'args': {'name': name}}


def write_events(path: str | Path, events: Sequence[TraceEvent]) -> None:
    """Write events as one trace; NaN, which JSON does not know, must have been left out."""
    trace = {'displayTimeUnit': 'ms', 'traceEvents': list(events)}
    Path(path).write_text(json.dumps(trace, allow_nan=False, separators=(',', ':')) + '\n')
