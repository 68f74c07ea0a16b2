# SPDX-License-Identifier: Apache-2.0
"""The benchmark's client as one that also keeps what the node published, as a bag."""

from __future__ import annotations

from collections.abc import Callable
import functools
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.serialization import serialize_message
from std_msgs.msg import Int64MultiArray, String

from oxygen_ros.msg import ActionChunk, LatencyReport, SceneGraph, Target

from ...replay.output_types import exact_bytes
from ...replay.recorder import OutputRecorder
from .load_client import LoadClient, LoadPlan, LoadRecording
from .node_driver import run_driver

# Beside those that its base hears.
_TOPICS: tuple[tuple[str, Any], ...] = (
    ('/oxygen/action_chunk', ActionChunk),
    ('/oxygen/latency', LatencyReport),
    ('/oxygen/timeline', Int64MultiArray),
    ('/oxygen/utterance', String),
    ('/diagnostics', DiagnosticArray),
)


def record_load(bag: Path, plan: LoadPlan, check: Callable[[], None]) -> LoadRecording:
    """Run the client to its end; the bag holds the messages that its figures come from, and more.

    :param bag: a folder that does not exist yet.
    """
    with OutputRecorder(bag) as recorder:
        return run_driver(lambda: RecordingClient(plan, check, recorder), RecordingClient.run)


class RecordingClient(LoadClient):
    """One thread, as its base."""

    def __init__(
        self, plan: LoadPlan, check: Callable[[], None], recorder: OutputRecorder
    ) -> None:
        super().__init__(plan, check)
        self._recorder = recorder
        for topic, kind in _TOPICS:
            self.create_subscription(kind, topic, functools.partial(self._keep, topic), 100)

    def _keep(self, topic: str, message: Any) -> None:
        if not self._recording_now:
            return
        package, folder, *_ = type(message).__module__.split('.')
        msgtype = f'{package}/{folder}/{type(message).__name__}'
        self._recorder.write_bytes(
            self.get_clock().now().nanoseconds,
            topic,
            msgtype,
            exact_bytes(serialize_message(message), msgtype),
        )

    def _on_target(self, target: Target) -> None:
        super()._on_target(target)
        self._keep('/oxygen/target', target)

    def _on_scene_graph(self, graph: SceneGraph) -> None:
        super()._on_scene_graph(graph)
        self._keep('/oxygen/scene_graph', graph)
