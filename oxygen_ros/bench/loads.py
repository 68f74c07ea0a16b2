# SPDX-License-Identifier: Apache-2.0
"""The loads of the benchmark, and one run of the real node under one of them, over DDS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import json
import os
from pathlib import Path
import tempfile
from typing import Any, TYPE_CHECKING

from ..demo.processes import Children
from ..figures.ticks import MAX_OBSERVATION_AGE_MS
from .load_figures import dialogue_figures, engine_figures, tick_figures
from .rows import BenchRow
from .subject import Subject, TINY

if TYPE_CHECKING:
    from ..nodes.clients.load_client import LoadPlan, LoadRun


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
    row: BenchRow,
    load: Load,
    duration_s: float,
    more: dict[str, Any] | None = None,
    cpu: int | None = None,
    beside: str | None = None,
    client: Callable[[LoadPlan, Callable[[], None]], LoadRun] | None = None,
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
        seen = (client or run_load)(plan, children.check)
        run = json.loads(record.read_text())
        children.stop()
        run['sent'] = json.loads(sent.read_text())
        aside = {'beside': json.loads(other.read_text())} if beside is not None else {}
    max_age_ms = parameters.get('max_observation_age_ms', MAX_OBSERVATION_AGE_MS)
    return {
        'tick': tick_figures(seen, float(max_age_ms)),
        'dialogue': dialogue_figures(seen),
        **engine_figures(run),
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


def isolate() -> None:
    """Keep the runs on this machine, in a domain of their own."""
    from ..nodes.middleware.transport import use_large_data_transport

    use_large_data_transport()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 100))
