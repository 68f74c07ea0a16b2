# SPDX-License-Identifier: Apache-2.0
"""A recording of a node's figures, made by rosbags' own writer with our definitions inside."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from oxygen_ros.engine.scheduling.timeline import EventKind
from oxygen_ros.figures.latency_fields import FIELDS

MESSAGES = Path(__file__).resolve().parent.parent.parent / 'msg'
START_NS = 1_700_000_000_000_000_000
TICK_NS = 20_000_000
CAMERAS = ['front', 'wrist']
SHARED_BYTES, ISOLATED_BYTES = 1.0e6, 2.8e6


def typestore():
    """Return the types of ROS 2 and our own."""
    store = get_typestore(Stores.ROS2_KILTED)
    types = {}
    for file in sorted(MESSAGES.glob('*.msg')):
        types.update(get_types_from_msg(file.read_text(), f'oxygen_ros/msg/{file.stem}'))
    store.register(types)
    return store


@dataclass(frozen=True)
class Plan:
    """What happened in the recorded run."""

    seconds: float = 4.0
    node: str = '/oxygen'
    plugin: StoragePlugin = StoragePlugin.MCAP
    late_tick: int = 120  # 30 ms late
    held_ticks: range = range(150, 155)
    skipped_ticks: range = range(121, 123)
    scene_period_s: float = 1.5
    wait_ns: int = 800_000  # of each due action, behind a slice of dialogue


class _Messages:
    """Makes messages; times in ns since the start."""

    def __init__(self, store):
        self.types = store.types

    def time(self, time_ns):
        return self.types['builtin_interfaces/msg/Time'](*divmod(START_NS + time_ns, 10**9))

    def header(self, time_ns):
        return self.types['std_msgs/msg/Header'](self.time(time_ns), '')

    def provenance(self, time_ns):
        stamps = [self.time(time_ns - 10_000_000 * number) for number in range(len(CAMERAS))]
        return self.types['oxygen_ros/msg/Provenance'](
            100 + time_ns // TICK_NS, self.time(time_ns), CAMERAS, stamps, self.time(time_ns), 'ab'
        )

    def latency(self, time_ns, **values):
        fields = dict.fromkeys(FIELDS, 1.0) | values
        return self.types['oxygen_ros/msg/LatencyReport'](
            self.header(time_ns), *(fields[name] for name in FIELDS)
        )

    def target(self, tick, lateness_s, held):
        ids, nothing = np.array([1], np.uint64), np.zeros(0, np.uint64)
        return self.types['oxygen_ros/msg/Target'](
            self.header(tick * TICK_NS),
            tick,
            ['elbow'],
            np.zeros(1),
            True,
            held,
            'chunk_exhausted' if held else '',
            lateness_s,
            0.1,
            nothing if held else ids,
            nothing if held else ids,
            np.zeros(0) if held else np.ones(1),
        )

    def chunk(self, number):
        time_ns = number * TICK_NS
        return self.types['oxygen_ros/msg/ActionChunk'](
            self.header(time_ns),
            number + 1,
            0,
            ['elbow'],
            8,
            1,
            0.02,
            0.012,
            0.004,
            time_ns,
            np.zeros(8),
            self.provenance(time_ns - 30_000_000),
        )

    def timeline(self, rows):
        layout = self.types['std_msgs/msg/MultiArrayLayout']([], 0)
        return self.types['std_msgs/msg/Int64MultiArray'](layout, np.array(rows).reshape(-1))

    def scene(self, time_ns, update_id):
        return self.types['oxygen_ros/msg/SceneGraph'](
            self.header(time_ns), update_id, [], [], self.provenance(time_ns)
        )


def lateness_s(plan, tick):
    """Return the lateness of a tick: a few tenths of a millisecond, in a fixed pattern."""
    return 0.030 if tick == plan.late_tick else 1e-4 * (1 + tick % 7)


def slices(plan, tick):
    """Return what the engine ran for a tick: rows of kind, start, end (ROS time), and counts."""
    due_ns = START_NS + tick * TICK_NS
    started_ns = due_ns + plan.wait_ns
    return [
        (EventKind.DIALOGUE, started_ns - 3_000_000, started_ns, 2, 4),
        (EventKind.ACTION_WAIT, due_ns, started_ns, 1, 7),
        (EventKind.ACTION, started_ns, started_ns + 4_000_000, 1, 7),
    ]


def make_recording(path, plan=Plan()):
    """Write the recording; return the targets' lateness in ms."""
    store = typestore()
    messages = _Messages(store)
    rows = []
    num_ticks = round(plan.seconds * 1e9 / TICK_NS)
    for tick in range(num_ticks):
        time_ns = tick * TICK_NS
        held = tick in plan.held_ticks
        if tick not in plan.skipped_ticks:
            rows.append(
                (time_ns, 'target', 'Target', messages.target(tick, lateness_s(plan, tick), held))
            )
        rows.append((time_ns, 'action_chunk', 'ActionChunk', messages.chunk(tick)))
        if tick % 5 == 0:
            share = tick / num_ticks
            report = messages.latency(
                time_ns,
                ticks=float(tick),
                text_requests=2.0,
                tokens_per_s=50.0,
                ttft_ms=float('nan') if share < 0.2 else 150.0 if share < 0.6 else 250.0,
                kv_bytes_shared=SHARED_BYTES * (0.5 + share / 2.0),
                kv_bytes_isolated=ISOLATED_BYTES * (0.5 + share / 2.0),
            )
            rows.append((time_ns, 'latency', 'LatencyReport', report))
            rows.append(
                (
                    time_ns,
                    'timeline',
                    '',
                    messages.timeline(
                        [row for offset in range(5) for row in slices(plan, tick + offset)]
                    ),
                )
            )
    for number in range(int(plan.seconds / plan.scene_period_s)):
        time_ns = round((number + 1) * plan.scene_period_s * 1e9)
        rows.append((time_ns, 'scene_graph', 'SceneGraph', messages.scene(time_ns, number + 1)))
    with Writer(path, version=9, storage_plugin=plan.plugin) as writer:
        connections = {}
        for time_ns, topic, name, message in sorted(rows, key=lambda row: row[0]):
            msgtype = f'oxygen_ros/msg/{name}' if name else 'std_msgs/msg/Int64MultiArray'
            if topic not in connections:
                connections[topic] = writer.add_connection(
                    f'{plan.node}/{topic}', msgtype, typestore=store
                )
            writer.write(
                connections[topic], START_NS + time_ns, store.serialize_cdr(message, msgtype)
            )
    return [
        1e3 * lateness_s(plan, tick) for tick in range(num_ticks) if tick not in plan.skipped_ticks
    ]
