# SPDX-License-Identifier: Apache-2.0
"""What a replay gives out: messages of the node's types, each with the time at which it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
import json
from typing import Any

import numpy as np

from .output_types import INT64S, STRING

# The node's topics under its default name, and two that only a replay has. Of outputs of the same
# time, a difference is reported in this order.
SCHEDULE = '/oxygen/replay/schedule'
CHUNK = '/oxygen/action_chunk'
TEXT = '/oxygen/replay/text'
UTTERANCE = '/oxygen/utterance'
SCENE = '/oxygen/scene_graph'
TARGET = '/oxygen/target'
TOPICS: Mapping[str, str] = {
    SCHEDULE: INT64S,  # rows kind, start, end, units, detail (ns) behind the observation's id
    CHUNK: 'oxygen_ros/msg/ActionChunk',
    TEXT: STRING,  # JSON: text, tokens, reason and times of one request
    UTTERANCE: STRING,
    SCENE: 'oxygen_ros/msg/SceneGraph',
    TARGET: 'oxygen_ros/msg/Target',
}
SCHEDULE_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Output:
    """One message and when it left (ROS time of the recording)."""

    stamp_ns: int
    topic: str
    message: Any  # a rosbags message

    @property
    def observation_id(self) -> int:
        """The observation that it came from; 0: none."""
        return observation_of(self.topic, self.message)


def observation_of(topic: str, message: Any) -> int:
    """Return the id of the observation behind an output, 0 where it names none."""
    if topic == SCHEDULE:
        return int(message.data[0])
    if topic == TEXT:
        return int(json.loads(message.data)['observation_id'])
    if topic == TARGET:
        return int(message.observation_ids[0]) if len(message.observation_ids) else 0
    provenance = getattr(message, 'provenance', None)
    return 0 if provenance is None else int(provenance.observation_id)


@dataclass(slots=True)
class ReplayResult:
    """The outputs of one replay, in the order in which they left, and what was read for them."""

    bag: str
    start_ns: int  # ROS time of the recording at which the replay began
    summary: str = ''  # of the recording: messages read and lost
    num_read: int = 0  # messages of the recording that could be read
    num_lost: int | None = 0  # None: nothing says how many
    damage: tuple[str, ...] = ()  # of the recording, a line each
    problems: list[str] = field(default_factory=list)  # messages that could not be used
    outputs: list[Output] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all of the recording could be read."""
        return not self.damage and self.num_lost == 0

    @property
    def loss(self) -> str:
        """How many messages of the recording were recovered and lost."""
        lost = 'an unknown number' if self.num_lost is None else self.num_lost
        return f'{self.num_read} messages recovered, {lost} lost ({"; ".join(self.damage)})'

    def counts(self) -> dict[str, int]:
        """Return the number of outputs by the last part of their topic, in order of topics."""
        return {topic.rpartition('/')[2]: len(self.of(topic)) for topic in TOPICS}

    def of(self, topic: str) -> list[Any]:
        """Return the messages of a topic."""
        return [output.message for output in self.outputs if output.topic == topic]

    @property
    def targets(self) -> list[Any]:
        """One Target for each control tick."""
        return self.of(TARGET)

    @property
    def chunks(self) -> list[Any]:
        """One ActionChunk for each action pass."""
        return self.of(CHUNK)

    @property
    def scene_graphs(self) -> list[Any]:
        """The SceneGraph after each update."""
        return self.of(SCENE)

    @property
    def texts(self) -> list[dict[str, Any]]:
        """Text, tokens, finish_reason and times of each text request, in the order of their end.

        Times are ns since the start of the replay.
        """
        return [json.loads(message.data) for message in self.of(TEXT)]

    @property
    def schedule(self) -> np.ndarray:
        """[num_events, 5] int64: kind, start, end (ns since the start), units, detail."""
        rows = [message.data[1:] for message in self.of(SCHEDULE)]
        return np.concatenate([*rows, np.zeros(0, np.int64)]).reshape(-1, SCHEDULE_COLUMNS)
