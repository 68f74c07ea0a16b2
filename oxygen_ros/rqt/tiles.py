# SPDX-License-Identifier: Apache-2.0
"""The row of numbers above the plots."""

from __future__ import annotations

from typing import Any

from ..figures.thresholds import Level
from ..report import colours
from .figures import BY_FIELD, NOTHING
from .history import Span
from .qt import QtCore, QtGui, QtWidgets

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
