# SPDX-License-Identifier: Apache-2.0
"""Paints a plot: axes, limits, series, legend."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..figures.thresholds import Level
from ..report import colours
from .history import Float64Array
from .plot_data import Plot, Series, Style
from .qt import QtCore, QtGui
from .scale import GAP_S, mark_text, marks, runs, thin

_SMALL = 0.85  # size of axis text and legend, of the font's own
_MANY_POINTS = 120  # of a line


class PlotPainter:
    """Paints one plot into a rectangle, once."""

    def __init__(self, painter: Any, box: Any, plot: Plot, font: Any, ink: Any) -> None:
        self._painter = painter
        self._plot = plot
        self._ink = ink
        small = QtGui.QFont(font)
        small.setPointSizeF(font.pointSizeF() * _SMALL)
        self._font = small
        self._metrics = QtGui.QFontMetricsF(small)
        self._marks = marks(plot.top())
        step = self._marks[1]
        self._texts = [mark_text(mark, step) for mark in self._marks]
        self._line = self._metrics.height()
        widest = max(self._metrics.horizontalAdvance(text) for text in self._texts)
        self._legend_top = box.bottom() - self._line
        self._area = QtCore.QRectF(
            box.left() + widest + 6.0,
            box.top() + 4.0,
            box.width() - widest - 8.0,
            max(10.0, box.height() - 2.2 * self._line - 8.0),
        )
        self._box = box

    def paint(self, notice: str) -> None:
        """Paint everything; a notice dims the series and is written across them."""
        self._painter.setFont(self._font)
        self._axes()
        self._legend()
        self._painter.save()
        self._painter.setClipRect(self._area.adjusted(-1.0, -3.0, 1.0, 1.0))
        self._limits()
        self._painter.setOpacity(0.3 if notice else 1.0)
        below = np.zeros(0)
        for series in self._plot.series:
            if not len(series.values):
                continue
            if series.style in (Style.BAND, Style.BAR):
                if not len(below):
                    below = np.zeros(len(series.values))
                above = below + np.nan_to_num(series.values)
                (self._band if series.style is Style.BAND else self._bars)(series, below, above)
                below = above
            elif series.style is Style.STEP:
                self._steps(series)
            else:
                self._curve(series)
        self._painter.restore()
        text = notice or (self._plot.note if self._plot.empty else '')
        if text:
            self._font.setBold(bool(notice))
            self._painter.setFont(self._font)
            self._painter.setPen(
                QtGui.QColor(colours.LEVELS[Level.BAD]) if notice else self._faded(0.55)
            )
            self._painter.drawText(self._area, QtCore.Qt.AlignmentFlag.AlignCenter, text)

    def _x(self, times_s: Float64Array) -> Float64Array:
        right: float = self._area.right()
        x: Float64Array = right + times_s / self._plot.seconds * self._area.width()
        return x

    def _y(self, values: Float64Array) -> Float64Array:
        bottom: float = self._area.bottom()
        y: Float64Array = bottom - values / self._marks[-1] * self._area.height()
        return y

    def _faded(self, alpha: float) -> Any:
        colour = QtGui.QColor(self._ink)
        colour.setAlphaF(alpha)
        return colour

    def _axes(self) -> None:
        area, painter = self._area, self._painter
        right = QtCore.Qt.AlignmentFlag.AlignRight | QtCore.Qt.AlignmentFlag.AlignVCenter
        for mark, text in zip(self._marks, self._texts):
            y = float(self._y(np.array([mark]))[0])
            painter.setPen(QtGui.QPen(self._faded(0.35 if mark == 0.0 else 0.12), 1.0))
            painter.drawLine(QtCore.QPointF(area.left(), y), QtCore.QPointF(area.right(), y))
            painter.setPen(self._faded(0.7))
            row = QtCore.QRectF(
                self._box.left() - 4.0,
                y - self._line / 2.0,
                area.left() - self._box.left(),
                self._line,
            )
            painter.drawText(row, right, text)
        seconds = self._plot.seconds
        for fraction, align in (
            (1.0, QtCore.Qt.AlignmentFlag.AlignLeft),
            (0.5, QtCore.Qt.AlignmentFlag.AlignHCenter),
            (0.0, QtCore.Qt.AlignmentFlag.AlignRight),
        ):
            text = f'-{fraction * seconds:g} s' if fraction else 'now'
            row = QtCore.QRectF(area.left(), area.bottom() + 2.0, area.width(), self._line)
            painter.drawText(row, align, text)

    def _legend(self) -> None:
        left = self._area.left()
        for series in self._plot.series:
            width = self._metrics.horizontalAdvance(series.label)
            if left + 15.0 + width > self._box.right():
                break
            self._painter.setPen(QtCore.Qt.PenStyle.NoPen)
            self._painter.setBrush(QtGui.QColor(series.colour))
            middle = self._legend_top + self._line / 2.0
            self._painter.drawRoundedRect(QtCore.QRectF(left, middle - 3.5, 11.0, 7.0), 2.0, 2.0)
            self._painter.setPen(self._faded(0.8))
            self._painter.drawText(
                QtCore.QRectF(left + 15.0, self._legend_top, width + 4.0, self._line),
                QtCore.Qt.AlignmentFlag.AlignLeft,
                series.label,
            )
            left += width + 29.0

    def _limits(self) -> None:
        threshold = self._plot.threshold
        if threshold is None:
            return
        for value, level in ((threshold.warn, Level.WARN), (threshold.bad, Level.BAD)):
            if value > self._marks[-1]:
                continue
            y = float(self._y(np.array([value]))[0])
            colour = QtGui.QColor(colours.LEVELS[level])
            tint = QtGui.QColor(colour)
            tint.setAlphaF(0.07)
            self._painter.fillRect(
                QtCore.QRectF(
                    self._area.left(),
                    self._area.top() - 3.0,
                    self._area.width(),
                    y - self._area.top() + 3.0,
                ),
                tint,
            )
            self._painter.setPen(QtGui.QPen(colour, 1.0, QtCore.Qt.PenStyle.DashLine))
            self._painter.drawLine(
                QtCore.QPointF(self._area.left(), y), QtCore.QPointF(self._area.right(), y)
            )

    def _polygon(self, x: Float64Array, y: Float64Array) -> Any:
        return QtGui.QPolygonF([QtCore.QPointF(*pair) for pair in zip(x.tolist(), y.tolist())])

    def _fill(
        self, x: Float64Array, upper: Float64Array, lower: Float64Array, colour: str, alpha: float
    ) -> None:
        ground = QtGui.QColor(colour)
        ground.setAlphaF(alpha)
        self._painter.setPen(QtCore.Qt.PenStyle.NoPen)
        self._painter.setBrush(ground)
        self._painter.drawPolygon(
            self._polygon(np.concatenate([x, x[::-1]]), np.concatenate([upper, lower[::-1]]))
        )

    def _curve(self, series: Series) -> None:
        columns = int(self._area.width())
        for times_s, values in runs(series.times_s, series.values):
            times_s, values = thin(times_s, values, columns)
            x, y = self._x(times_s), self._y(values)
            if series.style is Style.AREA:
                self._fill(x, y, self._y(np.zeros(len(x))), series.colour, 0.35)
            self._stroke(series.colour, x, y)

    def _stroke(self, colour: str, x: Float64Array, y: Float64Array) -> None:
        # Qt draws lines of 1 px many times faster than wider ones, and many points look the same.
        width = 1.0 if len(x) > _MANY_POINTS else 1.6
        pen = QtGui.QPen(QtGui.QColor(colour), width)
        pen.setJoinStyle(QtCore.Qt.PenJoinStyle.BevelJoin)
        self._painter.setPen(pen)
        self._painter.setBrush(QtCore.Qt.BrushStyle.NoBrush)
        self._painter.drawPolyline(self._polygon(x, y))

    def _band(self, series: Series, below: Float64Array, above: Float64Array) -> None:
        columns = int(self._area.width())
        stride = max(1, len(above) // max(1, columns))  # medians: no spike is lost by it
        times_s = series.times_s[::stride]
        x, upper, lower = self._x(times_s), self._y(above[::stride]), self._y(below[::stride])
        cuts = [0, *(np.flatnonzero(np.diff(times_s) > GAP_S) + 1), len(x)]
        for first, last in pairwise(cuts):
            self._fill(x[first:last], upper[first:last], lower[first:last], series.colour, 0.75)

    def _bars(self, series: Series, below: Float64Array, above: Float64Array) -> None:
        width = self._plot.bar_s / self._plot.seconds * self._area.width()
        gap = min(1.5, width * 0.2)
        self._painter.setPen(QtCore.Qt.PenStyle.NoPen)
        self._painter.setBrush(QtGui.QColor(series.colour))
        left, top, bottom = self._x(series.times_s), self._y(above), self._y(below)
        for index in np.flatnonzero(above > below):
            self._painter.drawRect(
                QtCore.QRectF(
                    left[index] + gap / 2.0, top[index], width - gap, bottom[index] - top[index]
                )
            )

    def _steps(self, series: Series) -> None:
        known = np.isfinite(series.values)
        times_s, values = series.times_s[known], series.values[known]
        if not len(values):
            return
        news = np.flatnonzero(np.diff(values, prepend=np.nan) != 0.0)
        ends_s = np.append(times_s[news[1:]], times_s[-1])
        x = np.column_stack([self._x(times_s[news]), self._x(ends_s)]).ravel()
        y = np.repeat(self._y(values[news]), 2)
        self._stroke(series.colour, x, y)
        if len(news) <= self._area.width() / 8.0:
            self._painter.setPen(QtCore.Qt.PenStyle.NoPen)
            self._painter.setBrush(QtGui.QColor(series.colour))
            for left, top in zip(x[::2], y[::2]):
                self._painter.drawEllipse(QtCore.QPointF(left, top), 3.0, 3.0)
