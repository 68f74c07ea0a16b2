# SPDX-License-Identifier: Apache-2.0
"""The second around the worst deadline, tick by tick, and what the engine ran in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..engine.scheduling.timeline import EventKind
from ..figures.latency_fields import growth
from ..figures.thresholds import Level
from ..figures.ticks import ON_TIME_MS
from .colours import BLUE, GREEN, GREY, LEVELS, ORANGE, PURPLE, SKY
from .drawing import legend_above, Picture, picture, stacked
from .recorded_figures import on_time
from .recording import Float64Array, Recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HALF_NS = 500_000_000
_MIN_WIDTH_MS = 0.8  # of a bar: a pixel, so that none is lost
# From the top: name, kind, colour.
_LANES = (
    ('action pass', EventKind.ACTION, ORANGE),
    ('action waits', EventKind.ACTION_WAIT, LEVELS[Level.BAD]),
    ('prefix', EventKind.PREFIX, BLUE),
    ('dialogue', EventKind.DIALOGUE, GREEN),
    ('scene graph', EventKind.SCENE_GRAPH, SKY),
)


def worst_tick(recording: Recording) -> int:
    """Return which target was latest, of those armed where there are any."""
    table = recording.tick_table()
    lateness_ms = table[:, 1]
    armed = table[:, 3] > 0.0
    if armed.any():
        lateness_ms = np.where(armed, lateness_ms, -np.inf)
    return int(lateness_ms.argmax())


def worst_second(recording: Recording, max_age_ms: float) -> Picture:
    """Plot each target around the worst deadline, and below what the engine ran."""
    middle_ns = recording.tick_ns[worst_tick(recording)]
    lanes = lanes_around(recording, middle_ns)
    figure, (targets, work) = stacked(2.6 + 0.24 * len(lanes), (2.0, 0.25 * max(2, len(lanes))))
    _draw_targets(targets, recording, middle_ns, max_age_ms)
    for place, (_, spans, colour) in enumerate(lanes):
        work.broken_barh(spans.tolist(), (-place - 0.4, 0.8), facecolors=colour, linewidth=0)
    work.set_yticks([-place for place in range(len(lanes))], [name for name, _, _ in lanes])
    _mark_preemptions((targets, work), recording, middle_ns)
    start_s = (middle_ns - recording.start_ns) * 1e-9
    work.set(
        xlim=(-510.0, 510.0),
        ylim=(0.6 - max(1, len(lanes)), 0.6),
        xlabel=f'ms around the worst deadline, {start_s:.2f} s after the start',
    )
    work.grid(visible=False, axis='y')
    legend_above(targets)
    more = '' if recording.slices else ' Slices are known of recordings with ~/timeline.'
    return picture(
        figure,
        'worst_second',
        'The worst second',
        'Each target around the latest one; below, what the engine ran. Action waits: '
        'a due pass waits for the end of the slice that it preempts. A red line: a '
        f'text request gave its blocks back in the second before.{more}',
    )


def _draw_targets(axes: Axes, recording: Recording, middle_ns: int, max_age_ms: float) -> None:
    table = recording.tick_table()
    good = on_time(table, max_age_ms) > 0.0
    held = table[:, 4] > 0.0
    offsets_ns = np.array(recording.tick_ns, dtype=np.int64) - middle_ns
    inside = np.abs(offsets_ns) <= HALF_NS
    times_ms = offsets_ns * 1e-6
    for label, colour, chosen in (
        ('target on time', BLUE, good),
        ('held', PURPLE, held),
        ('late or from an old observation', ORANGE, ~good & ~held),
    ):
        part = inside & chosen
        axes.vlines(times_ms[part], 0.0, table[part, 1], color=colour, linewidth=1.6)
        axes.plot(times_ms[part], table[part, 1], 'o', color=colour, markersize=4, label=label)
    axes.axhline(ON_TIME_MS, color=LEVELS[Level.BAD], linestyle='--', linewidth=1.0)
    top = max(float(table[inside, 1].max()) * 1.12, ON_TIME_MS * 1.3)
    axes.set(ylim=(-0.04 * top, top), ylabel='lateness (ms)')


def lanes_around(recording: Recording, middle_ns: int) -> list[tuple[str, Float64Array, str]]:
    """Return name, spans (start and length in ms around the middle: [n, 2]) and colour of each."""
    rows = recording.timeline()
    if not len(rows):
        spans = np.array(
            [
                ((end_ns - middle_ns) * 1e-6 - pass_ms, pass_ms)
                for end_ns, (pass_ms, _) in zip(recording.chunk_ns, recording.chunks)
            ]
        ).reshape(-1, 2)
        return [('action pass', _inside(spans), GREY)]
    lanes = []
    for name, kind, colour in _LANES:
        chosen = rows[rows[:, 0] == kind]
        spans = np.stack([chosen[:, 1] - middle_ns, chosen[:, 2] - chosen[:, 1]], axis=1) * 1e-6
        lanes.append((name, _inside(spans), colour))
    return lanes


def _inside(spans: Float64Array) -> Float64Array:
    half_ms = HALF_NS * 1e-6
    near = spans[(spans[:, 0] <= half_ms) & (spans.sum(axis=1) >= -half_ms)]
    return np.column_stack([near[:, 0], np.maximum(near[:, 1], _MIN_WIDTH_MS)])


def _mark_preemptions(parts: tuple[Axes, ...], recording: Recording, middle_ns: int) -> None:
    if not recording.latency_ns:
        return
    changes = growth(recording.latency('preemptions'))
    for time_ns, lost in zip(recording.latency_ns, changes):
        if lost and abs(time_ns - middle_ns) <= HALF_NS:
            for axes in parts:
                axes.axvline((time_ns - middle_ns) * 1e-6, color=LEVELS[Level.BAD], linewidth=1.0)
