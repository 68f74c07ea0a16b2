# SPDX-License-Identifier: Apache-2.0
"""Joins a node's subscriptions to the widget, across threads."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

from ..errors import OxygenError
from .latency_source import LatencySource
from .latency_widget import LatencyWidget
from .qt import QtCore, Signal

_DISCOVERY_MS = 2000


class _Bridge(QtCore.QObject):
    """Signals, which Qt delivers on the thread of whoever is connected."""

    report = Signal(object, object)
    camera_ages = Signal(object)


class WidgetFeed:
    """Feeds a widget from a node that another thread spins; belongs to Qt's thread."""

    def __init__(self, node: Node, widget: LatencyWidget) -> None:
        self._widget = widget
        self._bridge = _Bridge()
        self._bridge.report.connect(widget.add_report)
        self._bridge.camera_ages.connect(widget.add_camera_ages)
        self._source = LatencySource(node, self._send_report, self._send_camera_ages)
        widget.topic_chosen.connect(self._follow)
        self._timer = QtCore.QTimer()
        self._timer.timeout.connect(lambda: widget.offer_topics(self._source.topics()))
        self._timer.start(_DISCOVERY_MS)
        self._follow(widget.topic)

    def close(self) -> None:
        """End the subscriptions; the widget stays."""
        self._timer.stop()
        self._widget.topic_chosen.disconnect(self._follow)
        self._source.close()

    # Functions of our own: rclpy looks at a callback's signature, which a signal's `emit` lacks.
    def _send_report(self, row: Any, stamp_ns: int) -> None:
        self._bridge.report.emit(row, stamp_ns)

    def _send_camera_ages(self, ages_ms: dict[str, float]) -> None:
        self._bridge.camera_ages.emit(ages_ms)

    def _follow(self, topic: str) -> None:
        try:
            self._source.follow(topic)
            self._widget.show_message('')
        except OxygenError as error:
            self._widget.show_message(str(error))
