# SPDX-License-Identifier: Apache-2.0
"""What stands above the plots: the controls, whether reports come, the figures looked at first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..figures.thresholds import Level
from ..report import colours
from .figures import BY_FIELD, NOTHING
from .model import DEFAULT_WINDOW_S, Feed, Span, WINDOWS_S
from .qt import QtCore, QtGui, QtWidgets, Signal

_FEED_LEVELS = {Feed.WAITING: Level.UNKNOWN, Feed.LIVE: Level.GOOD, Feed.STALE: Level.BAD}
# The most important first.
TILES = (
    'on_time_ratio',
    'jitter_sd_ms',
    'ttft_ms',
    'camera_age_max_ms',
    'not_on_time',
    'action_pass_p99_ms',
    'kv_reduction',
    'chunks_per_s',
    'tokens_per_s',
)


class Toolbar(QtWidgets.QWidget):
    """Says what the user wants by signals; does nothing itself."""

    topic_chosen = Signal(str)
    window_chosen = Signal(float)  # seconds
    paused = Signal(bool)
    cleared = Signal()
    png_wanted = Signal()
    csv_wanted = Signal()

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self.topic = QtWidgets.QComboBox()
        self.topic.setEditable(True)
        self.topic.setMinimumContentsLength(15)
        self.topic.setInsertPolicy(QtWidgets.QComboBox.InsertPolicy.NoInsert)
        self.topic.setToolTip('Topic of oxygen_ros/msg/LatencyReport')
        self.window_length = QtWidgets.QComboBox()
        for seconds in WINDOWS_S:
            text = f'{seconds:g} s' if seconds < 60.0 else f'{seconds / 60.0:g} min'
            self.window_length.addItem(text, seconds)
        self.show_window(DEFAULT_WINDOW_S)
        self.pause = QtWidgets.QPushButton('Pause')
        self.pause.setCheckable(True)
        self.feed = QtWidgets.QLabel()
        self.feed.setMinimumWidth(1)
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.topic)
        row.addWidget(self.feed, 1)
        for control in (self.window_length, self.pause, *self._buttons()):
            row.addWidget(control)
        self.topic.activated.connect(lambda _: self._choose_topic())
        self.topic.lineEdit().returnPressed.connect(self._choose_topic)
        self.window_length.activated.connect(
            lambda _: self.window_chosen.emit(self.window_length.currentData())
        )
        self.pause.toggled.connect(self.paused)

    def show_topic(self, topic: str) -> None:
        """Show the topic in use."""
        self.topic.setEditText(topic)

    def offer_topics(self, topics: Iterable[str]) -> None:
        """Fill the list; what the user is typing stays."""
        wanted = sorted(topics)
        if wanted != [self.topic.itemText(index) for index in range(self.topic.count())]:
            text = self.topic.currentText()
            self.topic.clear()
            self.topic.addItems(wanted)
            self.topic.setEditText(text)

    def show_window(self, seconds: float) -> None:
        """Show the length of the window."""
        self.window_length.setCurrentIndex(max(0, self.window_length.findData(seconds)))

    def show_feed(self, feed: Feed, text: str) -> None:
        """Show whether reports come."""
        colour = colours.LEVELS[_FEED_LEVELS[feed]]
        self.feed.setText(f'<span style="color:{colour}">●</span> {text}')

    def _buttons(self) -> list[Any]:
        buttons = []
        for text, signal, tip in (
            ('Clear', self.cleared, 'Forget all reports'),
            ('PNG…', self.png_wanted, 'Save a picture of this window'),
            ('CSV…', self.csv_wanted, 'Save all reports kept, up to 10 minutes'),
        ):
            button = QtWidgets.QPushButton(text)
            button.setToolTip(tip)
            # A lambda, since `clicked` brings an argument that the signals do not take.
            button.clicked.connect(lambda _, signal=signal: signal.emit())
            buttons.append(button)
        return buttons

    def _choose_topic(self) -> None:
        topic = self.topic.currentText().strip()
        if topic:
            self.topic_chosen.emit(topic)


class Tile(QtWidgets.QWidget):
    """One figure: its value in large type over its name."""

    def __init__(self, label: str, parent: Any = None) -> None:
        super().__init__(parent)
        self.value = QtWidgets.QLabel(NOTHING)
        large = self.value.font()
        large.setPointSizeF(large.pointSizeF() * 1.25)
        large.setBold(True)
        self.value.setFont(large)
        self.level = Level.UNKNOWN
        name = QtWidgets.QLabel(label)
        small = name.font()
        small.setPointSizeF(small.pointSizeF() * 0.85)
        name.setFont(small)
        faint = name.palette()
        ink = faint.color(QtGui.QPalette.ColorRole.WindowText)
        ink.setAlphaF(0.65)
        faint.setColor(QtGui.QPalette.ColorRole.WindowText, ink)
        name.setPalette(faint)
        box = QtWidgets.QVBoxLayout(self)
        box.setContentsMargins(2, 2, 2, 2)
        box.setSpacing(0)
        for text in (self.value, name):
            text.setAlignment(QtCore.Qt.AlignmentFlag.AlignHCenter)
            text.setMinimumWidth(1)  # in a narrow dock rather cut than forcing it wide
            box.addWidget(text)

    def show_value(self, text: str, level: Level) -> None:
        """Show a value in the colour of its level; a good one in that of text."""
        self.value.setText(text)
        self.level = level
        palette = self.palette()
        if level is not Level.GOOD:
            palette.setColor(
                QtGui.QPalette.ColorRole.WindowText, QtGui.QColor(colours.LEVELS[level])
            )
        self.value.setPalette(palette)


class TileRow(QtWidgets.QWidget):
    """The figures that are looked at first; in a narrow window the last ones are left out."""

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self.tiles = {field: Tile(BY_FIELD[field].label) for field in TILES}
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for tile in self.tiles.values():
            row.addWidget(tile, 1)

    def resizeEvent(self, event: Any) -> None:
        """Show as many as fit."""
        super().resizeEvent(event)
        wanted = max(tile.sizeHint().width() for tile in self.tiles.values())
        for index, tile in enumerate(self.tiles.values()):
            tile.setVisible(index == 0 or (index + 1) * wanted <= self.width())

    def show_span(self, span: Span, known: bool) -> None:
        """Show the newest report.

        :param known: False: it says nothing about now (no report, or a stale one).
        """
        for field, tile in self.tiles.items():
            if span.newest is None:
                tile.show_value(NOTHING, Level.UNKNOWN)
                continue
            figure = BY_FIELD[field]
            value = float(figure.values(span.rows[-1:])[0])
            tile.show_value(figure.text(value), figure.level(value) if known else Level.UNKNOWN)
