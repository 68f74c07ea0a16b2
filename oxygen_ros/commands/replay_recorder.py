# SPDX-License-Identifier: Apache-2.0
"""The client of a replay in real time: brings the node up, asks, and records what it publishes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import time
from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from oxygen_ros.action import Dialogue
from oxygen_ros.msg import ActionChunk, LatencyReport, SceneGraph, Target

from ..nodes.clients.node_driver import NodeDriver
from ..replay.recorder import OutputRecorder

_LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_TOPICS: tuple[tuple[str, Any, QoSProfile | int], ...] = (
    ('oxygen/target', Target, 100),
    ('oxygen/action_chunk', ActionChunk, 100),
    ('oxygen/scene_graph', SceneGraph, _LATCHED),
    ('oxygen/utterance', String, 10),
    ('oxygen/latency', LatencyReport, 10),
)


class ReplayRecorder(NodeDriver):
    """Takes what the node publishes as bytes; one thread, which spins while it waits.

    :param check: raises when the node has ended.
    :param questions: (time since the start in s, text) of dialogue goals.
    :param recorder: None: only count.
    """

    def __init__(
        self,
        check: Callable[[], None],
        questions: Sequence[tuple[float, str]],
        recorder: OutputRecorder | None,
    ) -> None:
        super().__init__('oxygen_replay', check, recorder)
        self._recording_now = True
        self._questions = sorted(questions)
        for topic, kind, qos in _TOPICS:
            self.listen(topic, kind, qos=qos)

    def _arm(self) -> None:
        """Leave it disarmed: a recording must not drive a robot that listens."""

    def wait_for_images(self, cameras: Sequence[str], is_playing: Callable[[], bool]) -> None:
        """Spin until the player is there, or has come to its end already."""
        self.wait(
            lambda: all(map(self.is_published, cameras)) or not is_playing(),
            'the recording to be played',
        )

    def play(
        self,
        is_playing: Callable[[], bool],
        duration_s: float | None,
        progress: Callable[[float], None],
    ) -> None:
        """Ask and record until the recording or the duration ends.

        :param progress: told the seconds that have passed.
        """
        start_s = time.monotonic()
        while is_playing():
            passed_s = time.monotonic() - start_s
            if duration_s is not None and passed_s >= duration_s:
                break
            while self._questions and self._questions[0][0] <= passed_s:
                self._dialogue.send_goal_async(Dialogue.Goal(prompt=self._questions.pop(0)[1]))
            self.take()
            progress(passed_s)
