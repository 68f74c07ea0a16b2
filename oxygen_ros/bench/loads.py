"""The loads of the benchmark, and one run of the real node under one of them, over DDS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import json
import os
from pathlib import Path
import tempfile
from typing import Any, TYPE_CHECKING

import numpy as np

from ..demo.processes import Children
from ..engine.scheduling.timeline import EventKind
from ..errors import OxygenError
from .rows import Row
from .subject import Subject, TINY

if TYPE_CHECKING:
    from ..nodes.clients.load_client import LoadPlan, LoadRecording

ON_TIME_MS = 2.0
_RATE_HZ = 50.0


@dataclass(frozen=True, slots=True)
class Load:
    """What the node has to do besides moving."""

    name: str
    num_dialogues: int
    scene_period_s: float  # 0: no scene graph
    width: int  # of the cameras' images (px)
    height: int
    rate_hz: float  # of each camera


# Without the last, cameras bring just what the engine can use: small images at 10 Hz.
LOADS = (
    Load('idle', 0, 0.0, 112, 112, 10.0),
    Load('dialogue1', 1, 0.0, 112, 112, 10.0),
    Load('dialogue4_scene', 4, 2.0, 112, 112, 10.0),
    Load('dialogue4_scene_cameras', 4, 2.0, 640, 480, 30.0),
)
DIALOGUE_TOKENS = 64


def run_node(
    row: Row,
    load: Load,
    duration_s: float,
    more: dict[str, Any] | None = None,
    cpu: int | None = None,
    beside: str | None = None,
    client: Callable[[LoadPlan, Callable[[], None]], LoadRecording] | None = None,
    subject: Subject = TINY,
) -> dict[str, Any]:
    """Run cameras, node and client in three processes; return the figures of the run.

    A separate tick (`tick.process` among the parameters) is one more process.

    :param more: further parameters of the node.
    :param cpu: pin the node, and what runs beside it, to this core.
    :param beside: module to run beside the node, with a file for its figures as argument.
    :param client: loads the node and records; None: for `duration_s`.
    :param subject: the model, and the robot around it.
    """
    from ..nodes.clients.load_client import LoadPlan, run_load

    with tempfile.TemporaryDirectory() as folder, Children() as children:
        record, sent = Path(folder) / 'run.json', Path(folder) / 'sent.json'
        children.start(
            'camera source',
            'oxygen_ros.nodes.sources.camera_source',
            _ros_arguments(
                {
                    'cameras': list(subject.cameras),
                    'width': load.width,
                    'height': load.height,
                    'rate_hz': load.rate_hz,
                    'num_joints': len(subject.joints),
                    'record_file': str(sent),
                }
            ),
        )
        parameters: dict[str, Any] = {
            **subject.parameters(),
            'autostart': False,
            'image_transport': 'raw',
            'memory.period_s': load.scene_period_s,
            'kv.max_live_prefixes': 8,
            'record_file': str(record),
            'realtime.fifo_priority': 20,
            'realtime.process_priority': 1,
            **(_written(Path(folder)) if load.scene_period_s else {}),
            **row.parameters(),
            **(more or {}),
        }
        children.start('node', 'oxygen_ros.nodes.oxygen_node', _ros_arguments(parameters), cpu)
        if parameters.get('tick.process') == 'separate':
            # The client drives the engine's life only. Started last, it is ended first.
            children.start(
                'tick',
                'oxygen_ros.nodes.tick_node',
                _ros_arguments({**parameters, 'autostart': True}),
            )
        other = Path(folder) / 'beside.json'
        if beside is not None:
            model = [subject.model] if subject.is_checkpoint else []
            children.start('language process', beside, [str(other), *model], cpu)
        plan = LoadPlan(duration_s, load.num_dialogues, DIALOGUE_TOKENS, subject.cameras)
        recording = (client or run_load)(plan, children.check)
        run = json.loads(record.read_text())
        children.stop()
        run['sent'] = json.loads(sent.read_text())
        aside = {'beside': json.loads(other.read_text())} if beside is not None else {}
    return {
        'tick': tick_figures(recording, float(parameters.get('max_observation_age_ms', 400.0))),
        'dialogue': _dialogue_figures(recording, duration_s),
        **_engine_figures(run),
        **aside,
    }


def _written(folder: Path) -> dict[str, Any]:
    """Parameters of a node that remembers and accounts on disk."""
    return {'memory.store_file': str(folder / 'memory.db'), 'audit.file': str(folder / 'audit')}


def _ros_arguments(parameters: dict[str, Any]) -> list[str]:
    arguments = ['--ros-args']
    for name, value in parameters.items():
        text = value if isinstance(value, str) else json.dumps(value)
        arguments += ['-p', f'{name}:={text}']
    return arguments


def _percentile(values: Any, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None


def tick_figures(recording: LoadRecording, max_age_ms: float) -> dict[str, Any]:
    """Return the figures of the targets that the client saw.

    Deadlines without a target, told from the gaps of the tick numbers, count as not on time. A
    node that fell silent leaves no gap, so nearly as many deadlines are taken as the time has: 2
    fewer, since one at either end may lie outside it.

    :raises OxygenError: no target came at all.
    """
    if not recording.ticks:
        raise OxygenError(f'expected targets of the node, got none in {recording.duration_s:g} s')
    lateness = np.array(recording.lateness_ms)
    age = np.array(recording.age_ms)
    held = np.array(recording.held, dtype=bool)
    fresh = ~held & (age >= 0.0) & (age <= max_age_ms)
    span = recording.ticks[-1] - recording.ticks[0] + 1
    num_deadlines = max(span, round(recording.duration_s * _RATE_HZ) - 2)
    on_time = int((fresh & (lateness <= ON_TIME_MS)).sum())
    return {
        'sd_ms': float(lateness.std()),
        'p99_ms': _percentile(lateness, 99),
        'worst_ms': float(lateness.max()),
        'on_time': on_time / num_deadlines,
        'within_1ms': float((lateness <= 1.0).sum()) / num_deadlines,
        'held': int(held.sum()),
        'skipped': num_deadlines - len(lateness),
        'ticks': len(lateness),
        'age_ms': {'p50': _percentile(age[age >= 0], 50), 'p99': _percentile(age[age >= 0], 99)},
    }


def _dialogue_figures(recording: Any, duration_s: float) -> dict[str, Any]:
    gaps = np.diff(recording.scene_graphs)
    return {
        'ttft_ms': {
            'p50': _percentile(recording.ttft_ms, 50),
            'p99': _percentile(recording.ttft_ms, 99),
        },
        'first_tokens': len(recording.ttft_ms),
        'tokens_per_s': recording.dialogue_tokens / duration_s,
        'scene_graphs': len(recording.scene_graphs),
        'scene_gap_s': {'p50': _percentile(gaps, 50), 'worst': _percentile(gaps, 100)},
    }


def _engine_figures(run: dict[str, Any]) -> dict[str, Any]:
    rows = np.array(run['timeline'], dtype=np.int64).reshape(-1, 5)
    duration = rows[:, 2] - rows[:, 1]
    waits = duration[rows[:, 0] == EventKind.ACTION_WAIT] * 1e-6
    passes = duration[rows[:, 0] == EventKind.ACTION] * 1e-6
    span_s = (rows[:, 2].max() - rows[:, 1].min()) * 1e-9 if len(rows) else 1.0
    cameras = run['cameras'].values()
    scene = run['scene']
    ingest = [ms for camera in cameras for ms in camera['ingest_ms']]
    return {
        'preempt': {'wait_ms': {'p50': _percentile(waits, 50), 'p99': _percentile(waits, 99)}},
        'action': {
            'chunks_per_s': len(passes) / span_s,
            'pass_ms': {'p50': _percentile(passes, 50), 'p99': _percentile(passes, 99)},
        },
        'ingest': {
            'ms': {'p50': _percentile(ingest, 50), 'p99': _percentile(ingest, 99)},
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
            's': {
                'p50': _percentile(scene['durations_s'], 50),
                'worst': _percentile(scene['durations_s'], 100),
            },
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


def isolate() -> None:
    """Keep the runs on this machine, in a domain of their own."""
    from ..nodes.transport import use_large_data_transport

    use_large_data_transport()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 100))
