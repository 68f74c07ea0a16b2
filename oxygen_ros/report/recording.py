# SPDX-License-Identifier: Apache-2.0
"""What a recording says about latency, read whole into arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..figures.latency_fields import COLUMN, FIELDS, row_of, stamp_ns_of
from ..replay.bag import Bag, BagError, BagMessage
from ..replay.golden import START_TOPIC
from ..replay.outputs import SCHEDULE, SCHEDULE_COLUMNS

Float64Array = NDArray[np.float64]
Int64Array = NDArray[np.int64]

_PACKAGE = 'oxygen_ros/msg/'
LATENCY, TARGET, CHUNK, SCENE = (
    _PACKAGE + name for name in ('LatencyReport', 'Target', 'ActionChunk', 'SceneGraph')
)
TYPES = (LATENCY, TARGET, CHUNK, SCENE)
TIMELINE = 'timeline'  # the node's topic of what its engine ran when


@dataclass(slots=True)
class Recording:
    """One node's figures; times are ROS times of the headers, kept in ns."""

    path: Path
    node: str
    summary: str = ''  # what was read and what was lost
    num_unreadable: int = 0
    latency_ns: list[int] = field(default_factory=list)
    latency_rows: list[Float64Array] = field(default_factory=list)
    # Of each target: deadline (ns); tick, lateness (ms), age (ms, NaN: none), armed, held.
    tick_ns: list[int] = field(default_factory=list)
    ticks: list[tuple[int, float, float, bool, bool]] = field(default_factory=list)
    hold_reasons: Counter[str] = field(default_factory=Counter)
    # Of each chunk: end of its pass (ns); duration of the pass (ms), from step 0 to the end (ms).
    chunk_ns: list[int] = field(default_factory=list)
    chunks: list[tuple[float, float]] = field(default_factory=list)
    action_horizon: int = 0
    camera_ages: dict[str, list[tuple[int, float]]] = field(default_factory=dict)  # ns, ms
    scene_ns: list[int] = field(default_factory=list)  # when an update was recorded
    # What the engine ran: rows of kind, start, end (ns), units, detail.
    slices: list[Int64Array] = field(default_factory=list)
    replay_start_ns: int = 0  # of a deterministic replay, whose slices are relative to it

    @property
    def start_ns(self) -> int:
        """The first time of anything."""
        starts = [times[0] for times in self._times() if times]
        return min(starts, default=0)

    @property
    def duration_s(self) -> float:
        """From the first time to the last."""
        ends = [times[-1] for times in self._times() if times]
        return (max(ends, default=0) - self.start_ns) * 1e-9

    def seconds(self, times_ns: list[int]) -> Float64Array:
        """Return times in seconds since the start."""
        return (np.array(times_ns, dtype=np.int64) - self.start_ns).astype(np.float64) * 1e-9

    def latency(self, name: str) -> Float64Array:
        """Return a field of each report: [num_reports]."""
        return self.rows()[:, COLUMN[name]]

    def rows(self) -> Float64Array:
        """Return all reports: [num_reports, num_fields]."""
        return np.array(self.latency_rows).reshape(-1, len(FIELDS))

    def tick_table(self) -> Float64Array:
        """Return all targets: [num_ticks, 5] tick, lateness (ms), age (ms), armed, held."""
        return np.array(self.ticks, dtype=np.float64).reshape(-1, 5)

    def timeline(self) -> Int64Array:
        """Return what the engine ran: [num_events, 5] kind, start, end (ns), units, detail."""
        nothing = np.zeros((0, SCHEDULE_COLUMNS), np.int64)
        return np.concatenate([nothing, *self.slices])

    def _times(self) -> tuple[list[int], ...]:
        return self.latency_ns, self.tick_ns, self.chunk_ns


def nodes_of(bag: Bag) -> list[str]:
    """Return the nodes whose reports or targets are in a recording, by their topics' names."""
    return sorted(
        {
            topic.name.rpartition('/')[0]
            for topic in bag.topics
            if topic.msgtype in (LATENCY, TARGET)
        }
    )


def choose_node(bag: Bag, node: str | None = None) -> str:
    """Return the full name of the node that a recording is about.

    :param node: that name; None: the only one.
    :raises OxygenError: nothing of the kind was recorded, or of several nodes.
    """
    nodes = nodes_of(bag)
    if not nodes:
        raise BagError(
            bag.path,
            f'a topic of {LATENCY} or {TARGET}',
            ', '.join(sorted({topic.msgtype for topic in bag.topics})) or 'no messages',
        )
    if node is None and len(nodes) > 1:
        raise BagError(bag.path, 'one node, or --node', f'several: {", ".join(nodes)}')
    node = nodes[0] if node is None else node
    if node not in nodes:
        raise BagError(bag.path, f'figures of {node}', f'those of {", ".join(nodes)}')
    return node


def num_messages(bag: Bag, node: str) -> int:
    """Return how many messages `read_recording` will read."""
    add = adders(bag, node)
    return sum(topic.count for topic in bag.topics if topic.name in add)


def read_recording(
    bag: Bag, node: str | None = None, progress: Callable[[int], None] = lambda done: None
) -> Recording:
    """Read what a node published.

    :param node: its full name; None: the only one.
    :param progress: told now and then how many messages have been read.
    :raises OxygenError: nothing of the kind was recorded, or of several nodes.
    """
    node = choose_node(bag, node)
    recording = Recording(bag.path, node)
    add = adders(bag, node)
    for done, message in enumerate(bag.messages(add.keys()), 1):
        try:
            add[message.topic](recording, message, bag.deserialize(message))
        except (BagError, AttributeError, ValueError):  # bytes of another type, an older message
            recording.num_unreadable += 1
        if done % 512 == 0:
            progress(done)
    recording.summary = bag.summary()
    return recording


def adders(bag: Bag, node: str) -> dict[str, Add]:
    """Return what takes the messages of each topic that says something about a node."""
    found = {
        topic.name: _ADD[topic.msgtype]
        for topic in bag.topics
        if topic.msgtype in TYPES and topic.name.rpartition('/')[0] == node
    }
    others = {
        f'{node}/{TIMELINE}': _add_timeline,
        START_TOPIC: _add_start,
        SCHEDULE: _add_schedule,
    }
    return found | {topic.name: others[topic.name] for topic in bag.topics if topic.name in others}


def _add_latency(recording: Recording, message: BagMessage, report: Any) -> None:
    recording.latency_ns.append(stamp_ns_of(report.header))
    recording.latency_rows.append(row_of(report))


def _add_target(recording: Recording, message: BagMessage, target: Any) -> None:
    age_ms = target.observation_age_s * 1e3 if target.observation_age_s >= 0.0 else float('nan')
    recording.tick_ns.append(stamp_ns_of(target.header))
    recording.ticks.append(
        (target.tick, target.lateness_s * 1e3, age_ms, target.armed, target.held)
    )
    if target.held and target.armed:
        recording.hold_reasons[target.hold_reason] += 1


def _add_chunk(recording: Recording, message: BagMessage, chunk: Any) -> None:
    end_ns = stamp_ns_of(chunk.header) + round(chunk.inference_delay_s * 1e9)
    recording.chunk_ns.append(end_ns)
    recording.chunks.append((chunk.pass_s * 1e3, chunk.inference_delay_s * 1e3))
    recording.action_horizon = int(chunk.action_horizon)
    for name, stamp in zip(chunk.provenance.cameras, chunk.provenance.camera_stamps):
        age_ms = (end_ns - (int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec))) * 1e-6
        recording.camera_ages.setdefault(name, []).append((end_ns, age_ms))


def _add_scene(recording: Recording, message: BagMessage, scene: Any) -> None:
    recording.scene_ns.append(message.stamp_ns)


def _add_timeline(recording: Recording, message: BagMessage, timeline: Any) -> None:
    recording.slices.append(timeline.data.reshape(-1, SCHEDULE_COLUMNS))


def _add_start(recording: Recording, message: BagMessage, start: Any) -> None:
    recording.replay_start_ns = int(start.sec) * 1_000_000_000 + int(start.nanosec)


def _add_schedule(recording: Recording, message: BagMessage, schedule: Any) -> None:
    rows = schedule.data[1:].reshape(-1, SCHEDULE_COLUMNS).copy()
    rows[:, 1:3] += recording.replay_start_ns
    recording.slices.append(rows)


Add = Callable[[Recording, BagMessage, Any], None]
_ADD: dict[str, Add] = {
    LATENCY: _add_latency,
    TARGET: _add_target,
    CHUNK: _add_chunk,
    SCENE: _add_scene,
}
