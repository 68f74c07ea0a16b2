# SPDX-License-Identifier: Apache-2.0
"""What a run leaves for the benchmark and for traces: the engine's timeline, the images' fate."""

from __future__ import annotations

from dataclasses import asdict
import json
from pathlib import Path

from .robot import Robot


def write_run_record(path: str, robot: Robot) -> None:
    """Write the record of a run that has ended as JSON.

    Keys: `timeline` (rows of kind, start, end in steady ns, units, detail), `started_ns`, and for
    each camera under `cameras`: frames `received`, `decoded`, `superseded`, `refused`, `missed`
    (published, and replaced in the middleware or lost on the way), `waiting`,
    the stamps of the first and the last one received, and `ingest_ms`, the time from receipt to
    the finished frame of the newest images. Under `scene`: updates `merged`, `failed`,
    `unfinished`, `skipped` (the one before was still under way), and `durations_s` from request to
    publication. Under `written`: what the writer says of `store` and `audit` (`SinkStatus`), where
    there are.

    :raises OSError: the file cannot be written.
    """
    cameras = {}
    for name, source in robot.cameras.inputs.items():
        counts = source.counts
        cameras[name] = {
            'received': counts.received,
            'decoded': counts.decoded,
            'refused': counts.refused,
            'superseded': source.slot.num_superseded,
            'missed': source.missed,
            'waiting': source.slot.num_waiting,
            'first_stamp_ns': source.first_stamp_ns,
            'last_stamp_ns': source.last_stamp_ns,
            'ingest_ms': [duration_ns * 1e-6 for duration_ns in source.ingest_ns],
        }
    writer, scene = robot.records.status, robot.scene.counts
    written = {
        name: asdict(sink)
        for name in ('store', 'audit')
        if writer is not None and (sink := getattr(writer, name)) is not None
    }
    record = {
        'timeline': robot.engine.timeline.snapshot().tolist(),
        'started_ns': robot.started_ns,
        'cameras': cameras,
        'scene': {
            'merged': scene.merged,
            'failed': scene.failed,
            'skipped': scene.skipped,
            'unfinished': scene.unfinished,
            'durations_s': list(scene.durations_s),
        },
        'written': written,
    }
    Path(path).write_text(json.dumps(record))
