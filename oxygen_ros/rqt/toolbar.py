# SPDX-License-Identifier: Apache-2.0
"""The controls above the plots: topic, window, pause, clear, export, and whether reports come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..figures.thresholds import Level
from ..report import colours
from .history import Feed
from .monitor_model import DEFAULT_WINDOW_S, WINDOWS_S
from .qt import QtWidgets, Signal

_FEED_LEVELS = {Feed.WAITING: Level.UNKNOWN, Feed.LIVE: Level.GOOD, Feed.STALE: Level.BAD}


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
