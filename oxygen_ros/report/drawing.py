# SPDX-License-Identifier: Apache-2.0
"""How all plots of the page look; matplotlib without a window."""

from __future__ import annotations

from dataclasses import dataclass
import io
from typing import Any, TYPE_CHECKING

from ..errors import OxygenError
from ..figures.claims import CLAIM
from ..figures.thresholds import Level
from .colours import LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 130
INK = '#2b3038'
_STYLE: Any = {  # matplotlib's own type of it lists every key
    'font.size': 9.5,
    'axes.edgecolor': '#c3c8cf',
    'axes.labelcolor': INK,
    'text.color': INK,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'grid.color': '#e7e9ec',
    'axes.axisbelow': True,
    'xtick.color': '#5b626c',
    'ytick.color': '#5b626c',
    'axes.titlesize': 10.5,
    'axes.titleweight': 'bold',
    'axes.titlelocation': 'left',
}
_LEGEND: Any = {'frameon': False, 'fontsize': 8.5, 'handlelength': 1.2, 'columnspacing': 1.2}


@dataclass(frozen=True, slots=True)
class Picture:
    """One plot of the page."""

    name: str  # of its file
    title: str
    caption: str  # what is seen, and what it was measured on
    png: bytes


def require_matplotlib() -> None:
    """Raise an error that says how to install it, where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise OxygenError(
            "matplotlib: expected it for the plots; `pip install 'oxygen_ros[report]'` brings it"
        ) from None


def canvas(
    height_in: float = 2.9, columns: int = 1, widths: tuple[float, ...] | None = None
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of the page's width with axes side by side."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, height_in), layout='constrained')
        axes = figure.subplots(1, columns, squeeze=False, width_ratios=widths)
    return figure, list(axes[0])


def stacked(height_in: float, heights: tuple[float, ...]) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of the page's width with axes below each other, on one abscissa."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, height_in), layout='constrained')
        axes = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)
    return figure, list(axes[:, 0])


def picture(figure: Figure, name: str, title: str, caption: str) -> Picture:
    """Render a figure."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        # No date and no version inside: the same figures give the same bytes.
        figure.savefig(buffer, format='png', dpi=DOTS_PER_INCH, metadata={'Software': None})
    return Picture(name, title, caption, buffer.getvalue())


def legend_above(axes: Axes, columns: int = 6) -> None:
    """Put the legend over the plot, where it hides nothing."""
    axes.legend(
        loc='lower left', bbox_to_anchor=(-0.01, 1.0), ncols=columns, borderaxespad=0.1, **_LEGEND
    )


def shared_legend(figure: Figure, axes: Axes) -> None:
    """Put one legend over all axes of a figure, made from those of the given axes."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0.0, 0.0, 1.0, 0.92))  # room for it; 'outside' is unknown before 3.7
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc='upper left', ncols=8, **_LEGEND)


def plain_log_axis(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with marks that read 0.3, 1, 3."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale('log')
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter('{x:g}')
    axes.yaxis.set_minor_formatter(NullFormatter())


def claim_line(axes: Axes, key: str) -> None:
    """Draw what is claimed of a figure across its plot."""
    claim = CLAIM[key]
    axes.axhline(
        claim.line,
        color=LEVELS[Level.WARN],
        linestyle='--',
        linewidth=1.0,
        label=f'claim: {claim.line:g} {claim.unit}',
    )
