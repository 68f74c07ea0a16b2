# SPDX-License-Identifier: Apache-2.0
"""The latency monitor: figures, plots and controls in one plain Qt widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import os
from pathlib import Path
import time
from typing import Any, Protocol

from ..errors import OxygenError
from .header import TileRow, Toolbar
from .model import DEFAULT_TOPIC, Feed, Float64Array, MonitorModel, WINDOWS_S, write_csv
from .plot_view import PlotView
from .plots import PANELS
from .qt import NO_PLOTS, QtCore, QtWidgets, Signal

REFRESH_MS = 250
_DISCOVERY_MS = 2000
_COLUMNS = 2


class Source(Protocol):
    """Where reports come from."""

    def follow(self, topic: str) -> None:
        """Listen to this topic, and no longer to the one before.

        :raises OxygenError: no topic can have that name.
        """

    def topics(self) -> list[str]:
        """Return the topics that can be followed."""


class Inbox(QtCore.QObject):
    """Takes in reports on any thread; Qt delivers them on the widget's."""

    report = Signal(object, object)  # row, header stamp (ROS time, ns)
    camera_ages = Signal(object)  # camera: age of its newest image (ms)


class LatencyWidget(QtWidgets.QWidget):
    """Shows what it is fed; knows nothing of ROS.

    :param clock: seconds on a steady clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, parent: Any = None) -> None:
        super().__init__(parent)
        self.setObjectName('OxygenLatency')
        self.setWindowTitle('Oxygen Latency')
        self.model = MonitorModel(clock)
        self.topic = DEFAULT_TOPIC
        self.inbox = Inbox()  # without a parent: it outlives the widget where a thread still emits
        self._source: Source | None = None
        self.toolbar = Toolbar()
        self.tiles = TileRow()
        self.plots = [] if NO_PLOTS else [PlotView() for _ in PANELS]
        self.message = QtWidgets.QLabel()
        self._arrange()
        self._connect()
        self.toolbar.show_topic(self.topic)
        self._timer = QtCore.QTimer(self)
        self._timer.timeout.connect(self.refresh)
        self._timer.start(REFRESH_MS)
        self._discovery = QtCore.QTimer(self)
        self._discovery.timeout.connect(self._offer_topics)
        self.refresh()

    def watch(self, source: Source) -> None:
        """Let a source follow the topic that is chosen; what comes of it goes to the inbox."""
        self._source = source
        self._discovery.start(_DISCOVERY_MS)
        self._follow()

    def add_report(self, row: Float64Array, stamp_ns: int) -> None:
        """Take in a report: [num_fields], and its header's stamp (ROS time). Qt's thread only."""
        self.model.history.add(row, stamp_ns)

    def add_camera_ages(self, ages_ms: Mapping[str, float]) -> None:
        """Take in the age of each camera's newest image (ms). Qt's thread only."""
        self.model.history.add_camera_ages(ages_ms)

    def show_message(self, text: str) -> None:
        """Show one line under the plots; an empty one takes it away."""
        self.message.setText(text)
        self.message.setVisible(bool(text))

    def refresh(self) -> None:
        """Show the state of now; the widget calls it itself, four times a second."""
        span = self.model.view()
        feed = self.model.history.feed()
        stale = feed is Feed.STALE and not self.model.paused
        notice = f'no report for {self.model.history.silence_s():.0f} s' if stale else ''
        self.toolbar.show_feed(feed, self.model.status())
        self.tiles.show_span(span, known=not stale)
        if self.isVisible():
            for widget, panel in zip(self.plots, PANELS):
                widget.show_plot(panel(span), notice)

    def showEvent(self, event: Any) -> None:
        """Show the state of now; the plots of a hidden widget are not drawn."""
        super().showEvent(event)
        self.refresh()

    def pause(self, paused: bool) -> None:
        """Let the view stand still, or follow."""
        self.model.pause(paused)
        self.toolbar.pause.setChecked(paused)
        self.refresh()

    def clear(self) -> None:
        """Forget all reports."""
        self.model.clear()
        self.refresh()

    def set_window(self, seconds: float) -> None:
        """Choose how much time the plots show (s); a length that is not offered is ignored."""
        if seconds in WINDOWS_S:
            self.model.window_s = seconds
            self.toolbar.show_window(seconds)
            self.refresh()

    def set_topic(self, topic: str) -> None:
        """Watch another topic: the reports of the one before are forgotten."""
        self.topic = topic
        self.toolbar.show_topic(topic)
        self.clear()
        self._follow()

    def export_png(self, path: str | Path) -> None:
        """Save a picture of the widget.

        :raises OSError: the file cannot be written.
        """
        if not self.grab().save(str(path), 'PNG'):
            raise OSError(f'cannot write {path}')

    def export_csv(self, path: str | Path) -> None:
        """Save all reports kept, those that came during a pause as well.

        :raises OSError: the file cannot be written.
        """
        write_csv(path, self.model.history)

    def settings(self) -> dict[str, str]:
        """Return what is worth keeping between two runs."""
        return {'topic': self.topic, 'window_s': str(self.model.window_s)}

    def restore(self, settings: Mapping[str, object]) -> None:
        """Take back what `settings` returned; what is missing or of no use is ignored."""
        topic, seconds = settings.get('topic'), settings.get('window_s')
        if isinstance(topic, str) and topic and topic != self.topic:
            self.set_topic(topic)
        try:
            self.set_window(float(str(seconds)))
        except ValueError:
            return

    def stop(self) -> None:
        """End redrawing and following, before the widget goes."""
        self._timer.stop()
        self._discovery.stop()
        self._source = None

    def _follow(self) -> None:
        if self._source is None:
            return
        try:
            self._source.follow(self.topic)
            self.show_message('')
        except OxygenError as error:
            self.show_message(str(error))

    def _offer_topics(self) -> None:
        if self._source is not None:
            self.toolbar.offer_topics(self._source.topics())

    def _arrange(self) -> None:
        grid = QtWidgets.QGridLayout()
        grid.setSpacing(6)
        for index, plot in enumerate(self.plots):
            grid.addWidget(plot, index // _COLUMNS, index % _COLUMNS)
        box = QtWidgets.QVBoxLayout(self)
        box.setContentsMargins(8, 8, 8, 8)
        box.addWidget(self.toolbar)
        box.addWidget(self.tiles)
        if NO_PLOTS:
            box.addWidget(QtWidgets.QLabel(NO_PLOTS), 1)
        else:
            box.addLayout(grid, 1)
        box.addWidget(self.message)
        self.message.hide()

    def _connect(self) -> None:
        self.inbox.report.connect(self.add_report)
        self.inbox.camera_ages.connect(self.add_camera_ages)
        self.toolbar.topic_chosen.connect(self.set_topic)
        self.toolbar.window_chosen.connect(self.set_window)
        self.toolbar.paused.connect(self.pause)
        self.toolbar.cleared.connect(self.clear)
        self.toolbar.png_wanted.connect(
            lambda: self._ask_and_save('latency.png', 'PNG (*.png)', self.export_png)
        )
        self.toolbar.csv_wanted.connect(
            lambda: self._ask_and_save('latency.csv', 'CSV (*.csv)', self.export_csv)
        )

    def _ask_and_save(self, name: str, kind: str, save: Callable[[str], None]) -> None:
        path, _ = QtWidgets.QFileDialog.getSaveFileName(self, 'Save', name, kind)
        if not path:
            return
        try:
            save(path)
            self.show_message(f'saved {os.path.abspath(path)}')
        except OSError as error:
            self.show_message(f'not saved: {error}')
