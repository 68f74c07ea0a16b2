"""A Qt widget that shows one plot."""
from __future__ import annotations

from typing import Any

from ..report import colours
from ..report.thresholds import Level
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
            PlotPainter(painter, inner, self.plot, self.font(),
                        palette.color(QtGui.QPalette.ColorRole.Text)).paint(self._notice)
        painter.end()

    def _paint_title(self, painter: Any, box: Any, bold: Any, line: float) -> None:
        plot = self.plot
        assert plot is not None
        text_colour = self.palette().color(QtGui.QPalette.ColorRole.Text)
        left = box.left() + _SIDE
        row = QtCore.QRectF(left, box.top() + 5.0, box.width() - 2 * _SIDE, line)
        painter.setFont(bold)
        painter.setPen(text_colour)
        painter.drawText(row, QtCore.Qt.AlignmentFlag.AlignLeft, plot.title)
        used = QtGui.QFontMetricsF(bold).horizontalAdvance(plot.title)
        fade = QtGui.QColor(text_colour)
        fade.setAlphaF(0.6)
        painter.setFont(self.font())
        painter.setPen(fade)
        painter.drawText(row.adjusted(used + 7.0, 0.0, 0.0, 0.0),
                         QtCore.Qt.AlignmentFlag.AlignLeft, plot.unit)
        if plot.headline and not self._notice:
            level = plot.level if plot.level is not Level.UNKNOWN else None
            painter.setPen(QtGui.QColor(colours.LEVELS[level]) if level else fade)
            painter.setFont(bold)
            painter.drawText(row, QtCore.Qt.AlignmentFlag.AlignRight, plot.headline)
