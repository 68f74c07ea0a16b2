# SPDX-License-Identifier: Apache-2.0
"""A recording as a trace: targets, action passes, slices, and figures of ~/latency as graphs."""

from __future__ import annotations

from collections.abc import Iterator
import math

from ..figures.latency_fields import COLUMN
from .perfetto import (
    counter_event,
    process_name,
    slice_event,
    timeline_events,
    TraceEvent,
    track_name,
)
from .recording import Recording

_PID = 2
_TARGETS, _HOLDS, _PASSES = 1, 2, 3
_GRAPHS = (
    ('jitter (ms)', ('jitter_sd_ms', 'jitter_p99_ms', 'jitter_max_ms')),
    ('KV (bytes)', ('kv_bytes_shared', 'kv_bytes_isolated')),
    ('KV blocks free', ('kv_blocks_free',)),
    ('text requests', ('text_requests',)),
    ('text preemptions', ('preemptions',)),
    ('tokens per second', ('tokens_per_s',)),
    ('oldest camera (ms)', ('camera_age_max_ms',)),
)


def trace_events(recording: Recording) -> list[TraceEvent]:
    """Return the events; 0 of the trace is the recording's start.

    A target spans from its deadline to its publication, so that a late one is long.
    """
    return [
        process_name(_PID, recording.node),
        track_name(_PID, _TARGETS, 'target, from deadline'),
        track_name(_PID, _HOLDS, 'held target, from deadline'),
        track_name(_PID, _PASSES, 'action pass'),
        *_targets(recording),
        *_passes(recording),
        *_graphs(recording),
        *timeline_events(recording.timeline(), recording.start_ns),
    ]


def _targets(recording: Recording) -> Iterator[TraceEvent]:
    for time_ns, (tick, lateness_ms, age_ms, armed, held) in zip(
        recording.tick_ns, recording.ticks
    ):
        details: dict[str, float] = {'tick': int(tick), 'armed': bool(armed)}
        if not math.isnan(age_ms):
            details['observation_age_ms'] = age_ms
        track, name = (_HOLDS, 'held') if held else (_TARGETS, 'target')
        yield slice_event(
            _PID,
            track,
            name,
            time_ns - recording.start_ns,
            max(1_000, round(lateness_ms * 1e6)),
            details,
        )


def _passes(recording: Recording) -> Iterator[TraceEvent]:
    for end_ns, (pass_ms, delay_ms) in zip(recording.chunk_ns, recording.chunks):
        length_ns = round(pass_ms * 1e6)
        yield slice_event(
            _PID,
            _PASSES,
            'action pass',
            end_ns - length_ns - recording.start_ns,
            length_ns,
            {'after_step_0_ms': delay_ms},
        )


def _graphs(recording: Recording) -> Iterator[TraceEvent]:
    for time_ns, row in zip(recording.latency_ns, recording.latency_rows):
        for name, fields in _GRAPHS:
            values = {
                field: float(row[COLUMN[field]])
                for field in fields
                if not math.isnan(row[COLUMN[field]])
            }
            if values:
                yield counter_event(_PID, name, time_ns - recording.start_ns, values)
