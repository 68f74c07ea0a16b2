# SPDX-License-Identifier: Apache-2.0
"""The rqt plugin: our widget in rqt's frame, on rqt's node."""

from __future__ import annotations

from typing import Any

from rqt_gui_py.plugin import Plugin

from .source import LatencySource
from .widget import LatencyWidget


class OxygenLatency(Plugin):
    """Made and closed by rqt; rqt spins the node on a thread of its own."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.setObjectName('OxygenLatency')
        self._widget = LatencyWidget()
        if context.serial_number() > 1:  # more than one of them is open
            title = f'{self._widget.windowTitle()} ({context.serial_number()})'
            self._widget.setWindowTitle(title)
        inbox = self._widget.inbox
        self._source = LatencySource(context.node, inbox.report.emit, inbox.camera_ages.emit)
        self._widget.watch(self._source)
        context.add_widget(self._widget)

    def shutdown_plugin(self) -> None:
        """End the subscriptions; rqt deletes the widget."""
        self._widget.stop()
        self._source.close()

    def save_settings(self, plugin_settings: Any, instance_settings: Any) -> None:
        """Keep what the user has chosen, in this perspective."""
        for name, value in self._widget.settings().items():
            instance_settings.set_value(name, value)

    def restore_settings(self, plugin_settings: Any, instance_settings: Any) -> None:
        """Take it back."""
        self._widget.restore(
            {name: instance_settings.value(name) for name in self._widget.settings()}
        )
