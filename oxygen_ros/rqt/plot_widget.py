# SPDX-License-Identifier: Apache-2.0
"""A Qt widget that shows one plot."""

from __future__ import annotations

from typing import Any

from ..figures.thresholds import Level
from ..report import colours
from .plot_data import Plot
from .plot_painter import PlotPainter
from .qt import QtCore, QtGui, QtWidgets

_SIDE = 10  # px between the widget's edge and what is in it


class PlotWidget(QtWidgets.QFrame):
    """Shows the newest plot it was given, in the colours of the palette."""

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self.plot: Plot | None = None
        self._notice = ''
        self.setMinimumSize(240, 130)
        self.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)

    def show_plot(self, plot: Plot, notice: str = '') -> None:
        """Draw a plot.

        :param notice: why it is out of date, written across it; empty: it is not.
        """
        self.plot = plot
        self._notice = notice
        self.setToolTip(f'{plot.title} ({plot.unit})')
        self.update()

    def paintEvent(self, event: Any) -> None:
        """Draw."""
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        palette = self.palette()
        box = QtCore.QRectF(self.rect()).adjusted(1.5, 1.5, -1.5, -1.5)
        painter.setPen(palette.color(QtGui.QPalette.ColorRole.Mid))
        painter.setBrush(palette.color(QtGui.QPalette.ColorRole.Base))
        painter.drawRoundedRect(box, 5.0, 5.0)
        if self.plot is not None:
            bold = self.font()
            bold.setBold(True)
            line = QtGui.QFontMetricsF(bold).height()
            self._paint_title(painter, box, bold, line)
            inner = box.adjusted(_SIDE, line + 9.0, -_SIDE, -6.0)
            PlotPainter(
                painter,
                inner,
                self.plot,
                self.font(),
                palette.color(QtGui.QPalette.ColorRole.Text),
            ).paint(self._notice)
        painter.end()

    def _paint_title(self, painter: Any, box: Any, bold: Any, line: float) -> None:
        plot = self.plot
        assert plot is not None
        ink = self.palette().color(QtGui.QPalette.ColorRole.Text)
        fade = QtGui.QColor(ink)
        fade.setAlphaF(0.6)
        row = QtCore.QRectF(box.left() + _SIDE, box.top() + 5.0, box.width() - 2 * _SIDE, line)
        metrics = QtGui.QFontMetricsF(bold)
        used = metrics.horizontalAdvance(plot.title) + _SIDE
        headline = '' if self._notice else plot.headline
        needed = metrics.horizontalAdvance(headline) + _SIDE
        painter.setFont(bold)
        painter.setPen(ink)
        painter.drawText(row, QtCore.Qt.AlignmentFlag.AlignLeft, plot.title)
        known = plot.level is not Level.UNKNOWN
        painter.setPen(QtGui.QColor(colours.LEVELS[plot.level]) if known else fade)
        painter.drawText(
            row,
            QtCore.Qt.AlignmentFlag.AlignRight,
            metrics.elidedText(headline, QtCore.Qt.TextElideMode.ElideLeft, row.width() - used),
        )
        unit = QtGui.QFontMetricsF(self.font()).horizontalAdvance(plot.unit)
        if used + unit + needed <= row.width():  # a figure is worth more than the unit
            painter.setFont(self.font())
            painter.setPen(fade)
            painter.drawText(
                row.adjusted(used - 3.0, 0.0, 0.0, 0.0),
                QtCore.Qt.AlignmentFlag.AlignLeft,
                plot.unit,
            )
