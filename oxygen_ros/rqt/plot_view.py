# SPDX-License-Identifier: Apache-2.0
"""A Qt widget that shows one plot, painted by pyqtgraph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..figures.thresholds import Level
from ..report import colours
from .model import Float64Array
from .plots import Plot, Series, Style
from .qt import pyqtgraph, QtCore, QtGui, QtWidgets

_GAP_S = 2.5  # readings further apart are not joined by a line; ages of cameras come each second
_ENDS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # of an axis, times a power of ten
_FAR = 1e12  # beyond every axis
_SMALL = 0.85  # size of axis text and legend, of the font's own


class PlotView(QtWidgets.QFrame):
    """Shows the newest plot it was given, in the colours of the palette."""

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self.plot: Plot | None = None
        self._made_for: object = None
        self._items: list[Any] = []  # one a series
        self._ink: Any = None
        self.setFrameShape(QtWidgets.QFrame.Shape.StyledPanel)
        self.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.setMinimumSize(240, 130)
        self._title = QtWidgets.QLabel()
        self._unit = _Elided(QtCore.Qt.TextElideMode.ElideRight)
        self._headline = _Elided(QtCore.Qt.TextElideMode.ElideLeft)
        self._legend = QtWidgets.QLabel()
        # No option of pyqtgraph's own is set: under rqt other plugins share them.
        self._graph = pyqtgraph.PlotWidget(background=None)
        self._veil = QtWidgets.QGraphicsRectItem()  # dims what lies below it
        self._notice = pyqtgraph.TextItem(anchor=(0.5, 0.5))
        self._arrange()

    def show_plot(self, plot: Plot, notice: str = '') -> None:
        """Draw a plot.

        :param notice: why it is out of date, written across it; empty: it is not.
        """
        self.plot = plot
        wanted = (plot.unit, plot.seconds, *((one.label, one.style) for one in plot.series))
        if wanted != self._made_for:
            self._made_for = wanted
            self._make_items(plot)
        self._colour_axes()
        self._headline.setText('' if notice else plot.headline)
        _colour(self._headline, QtGui.QColor(colours.LEVELS[plot.level]))
        self._draw_series(plot)
        top = round_up(plot.top())
        self._veil.setRect(-plot.seconds, -top, plot.seconds, 3.0 * top)
        self._veil.setVisible(bool(notice))
        self._graph.setYRange(0.0, top, padding=0.08)  # room for the marks at both ends
        text = notice or (plot.note if plot.empty else '')
        self._notice.setText(text, colours.LEVELS[Level.BAD if notice else Level.UNKNOWN])
        self._notice.setPos(-plot.seconds / 2.0, top / 2.0)

    def _draw_series(self, plot: Plot) -> None:
        below = np.zeros(0)
        for series, item in zip(plot.series, self._items):
            times_s, values = series.times_s, series.values
            if series.style in (Style.BAND, Style.BAR):
                below = below if len(below) else np.zeros(len(values))
                values = below + np.nan_to_num(values)
            if series.style is Style.BAR:
                item.setOpts(x0=times_s, width=plot.bar_s * 0.8, y0=below, y1=values)
            elif series.style in (Style.STEP, Style.DOTS):
                item.setData(times_s, values)
            else:
                item.setData(*_cut(times_s, values))
            below = values

    def _make_items(self, plot: Plot) -> None:
        self._title.setText(plot.title)
        self._unit.setText(plot.unit)
        self._legend.setText(
            '&nbsp; '.join(
                f'<span style="color:{series.colour}">■</span> {series.label}'
                for series in plot.series
                if series.label
            )
        )
        self.setToolTip(f'{plot.title} ({plot.unit})')
        self._graph.clear()
        begin_s = -plot.seconds
        self._graph.setXRange(begin_s, 0.0, padding=0.0)
        self._graph.getAxis('bottom').setTicks(
            [[*((time_s, f'{time_s:g} s') for time_s in (begin_s, begin_s / 2.0)), (0.0, 'now')]]
        )
        if plot.threshold is not None:
            for limit, level in (
                (plot.threshold.warn, Level.WARN),
                (plot.threshold.bad, Level.BAD),
            ):
                self._graph.addItem(_beyond(limit, colours.LEVELS[level]), ignoreBounds=True)
        self._items = [_item(series) for series in plot.series]
        for place, (series, item) in enumerate(zip(plot.series, self._items)):
            # Each band is filled down to 0: the lowest one lies above the others.
            item.setZValue(-place if series.style is Style.BAND else place)
            self._graph.addItem(item, ignoreBounds=True)
        for item in (self._veil, self._notice):
            item.setZValue(len(self._items))
            self._graph.addItem(item, ignoreBounds=True)

    def _colour_axes(self) -> None:
        ink = self.palette().color(QtGui.QPalette.ColorRole.Text)
        if ink == self._ink:
            return
        self._ink = ink
        veil = self.palette().color(QtGui.QPalette.ColorRole.Base)
        veil.setAlphaF(0.7)
        self._veil.setBrush(veil)
        line, text = QtGui.QColor(ink), QtGui.QColor(ink)
        line.setAlphaF(0.35)
        text.setAlphaF(0.7)
        for name in ('left', 'bottom'):
            axis = self._graph.getAxis(name)
            axis.setPen(line)
            axis.setTickPen(ink)
            axis.setTextPen(text)
        _colour(self._title, ink)
        _colour(self._unit, text)
        _colour(self._legend, ink)

    def _arrange(self) -> None:
        bold, small = self.font(), self.font()
        bold.setBold(True)
        small.setPointSizeF(small.pointSizeF() * _SMALL)
        self._title.setFont(bold)
        self._headline.setFont(bold)
        self._headline.setAlignment(QtCore.Qt.AlignmentFlag.AlignRight)
        self._unit.setSizePolicy(  # a figure is worth more than the unit
            QtWidgets.QSizePolicy.Policy.Ignored, QtWidgets.QSizePolicy.Policy.Fixed
        )
        self._legend.setFont(small)
        self._legend.setMinimumWidth(1)  # in a narrow dock rather cut than forcing it wide
        self._graph.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
        self._graph.setMouseEnabled(False, False)
        self._graph.setMenuEnabled(False)
        self._graph.hideButtons()
        self._graph.showGrid(y=True, alpha=0.15)
        self._veil.setPen(QtGui.QPen(QtCore.Qt.PenStyle.NoPen))
        self._graph.getPlotItem().setContentsMargins(3.0, 0.0, 16.0, 0.0)  # half of 'now'
        for name in ('left', 'bottom'):
            axis = self._graph.getAxis(name)
            axis.setStyle(tickFont=small, tickLength=0, hideOverlappingLabels=30)
            axis.setZValue(self._graph.getViewBox().zValue() - 1.0)  # its grid below the series
        row = QtWidgets.QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self._title)
        row.addWidget(self._unit, 1)
        row.addWidget(self._headline)
        box = QtWidgets.QVBoxLayout(self)
        box.setContentsMargins(8, 4, 8, 4)
        box.setSpacing(1)
        box.addLayout(row)
        box.addWidget(self._graph, 1)
        box.addWidget(self._legend)


class _Elided(QtWidgets.QLabel):
    """A line of text; where there is no room for all of it, dots stand for one end."""

    def __init__(self, mode: Any) -> None:
        super().__init__()
        self._mode = mode
        self.setMinimumWidth(1)

    def paintEvent(self, event: Any) -> None:
        """Draw."""
        painter = QtGui.QPainter(self)
        text = self.fontMetrics().elidedText(self.text(), self._mode, self.width())
        painter.drawText(self.rect(), self.alignment(), text)
        painter.end()


def round_up(top: float) -> float:
    """Return the end of an axis: a round number of at least `top`, so that it rarely moves."""
    if not 0.0 < top < math.inf:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(top))
    return next(end * power for end in (*_ENDS, 20.0) if end * power >= top * (1.0 - 1e-9))


def _item(series: Series) -> Any:
    colour = pyqtgraph.mkColor(series.colour)
    if series.style is Style.BAR:
        return pyqtgraph.BarGraphItem(x0=[], width=1.0, y0=[], y1=[], pen=None, brush=colour)
    if series.style is Style.DOTS:
        return pyqtgraph.ScatterPlotItem(pen=None, brush=colour, size=6)
    if series.style is Style.BAND:
        return pyqtgraph.PlotCurveItem(pen=None, fillLevel=0.0, brush=colour, connect='finite')
    if series.style is Style.AREA:
        ground = pyqtgraph.mkColor(series.colour)
        ground.setAlphaF(0.35)
        return pyqtgraph.PlotCurveItem(pen=colour, fillLevel=0.0, brush=ground, connect='finite')
    return pyqtgraph.PlotCurveItem(pen=colour, connect='finite')


def _beyond(limit: float, colour: str) -> Any:
    tint = pyqtgraph.mkColor(colour)
    tint.setAlphaF(0.07)
    return pyqtgraph.LinearRegionItem(
        (limit, _FAR),
        orientation='horizontal',
        movable=False,
        pen=pyqtgraph.mkPen(colour, style=QtCore.Qt.PenStyle.DashLine),
        brush=tint,
    )


def _colour(label: Any, colour: Any) -> None:
    palette = label.palette()
    palette.setColor(label.foregroundRole(), colour)
    label.setPalette(palette)


def _cut(times_s: Float64Array, values: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Interrupt a line where reports were missing; where a value is NaN pyqtgraph does."""
    places = np.flatnonzero(np.diff(times_s) > _GAP_S) + 1
    return np.insert(times_s, places, math.nan), np.insert(values, places, math.nan)
