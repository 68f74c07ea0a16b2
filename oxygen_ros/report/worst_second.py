"""The second around the worst deadline, tick by tick."""
from __future__ import annotations

import numpy as np

from .colours import BLUE, GREY, LEVELS, ORANGE, PURPLE
from .drawing import canvas, legend_above, Picture, picture
from .latency_fields import growth
from .recorded_figures import on_time, ON_TIME_MS
from .recording import Recording
from .thresholds import Level

HALF_NS = 500_000_000


def worst_tick(recording: Recording) -> int:
    """Return which target was latest, of those armed where there are any."""
    table = recording.tick_table()
    lateness_ms = table[:, 1]
    armed = table[:, 3] > 0.0
    if armed.any():
        lateness_ms = np.where(armed, lateness_ms, -np.inf)
    return int(lateness_ms.argmax())


def worst_second(recording: Recording, max_age_ms: float) -> Picture:
    """Plot each target and each action pass around the worst deadline."""
    figure, (axes,) = canvas(3.2)
    worst = worst_tick(recording)
    middle_ns = recording.tick_ns[worst]
    table = recording.tick_table()
    good = on_time(table, max_age_ms) > 0.0
    held = table[:, 4] > 0.0
    offsets_ns = np.array(recording.tick_ns, dtype=np.int64) - middle_ns
    inside = np.abs(offsets_ns) <= HALF_NS
    times_ms = offsets_ns * 1e-6
    for label, colour, chosen in (
            ('target on time', BLUE, good), ('held', PURPLE, held),
            ('late or from an old observation', ORANGE, ~good & ~held)):
        part = inside & chosen
        axes.vlines(times_ms[part], 0.0, table[part, 1], color=colour, linewidth=1.6)
        axes.plot(times_ms[part], table[part, 1], 'o', color=colour, markersize=4, label=label)
    axes.axhline(ON_TIME_MS, color=LEVELS[Level.BAD], linestyle='--', linewidth=1.0)
    top = max(float(table[inside, 1].max()) * 1.12, ON_TIME_MS * 1.3)
    lane = top * 0.09
    spans = [((end_ns - middle_ns) * 1e-6 - pass_ms, pass_ms)
             for end_ns, (pass_ms, _) in zip(recording.chunk_ns, recording.chunks)
             if abs(end_ns - middle_ns) <= HALF_NS]
    axes.broken_barh(spans, (-1.6 * lane, lane), facecolors=GREY, label='action pass')
    changes = growth(recording.latency('preemptions')) if recording.latency_ns else np.zeros(0)
    for time_ns, lost in zip(recording.latency_ns, changes):
        if lost and abs(time_ns - middle_ns) <= HALF_NS:
            axes.axvline((time_ns - middle_ns) * 1e-6, color=LEVELS[Level.BAD], linewidth=1.0)
    start_s = (middle_ns - recording.start_ns) * 1e-9
    axes.set(xlim=(-510.0, 510.0), ylim=(-2.0 * lane, top), ylabel='lateness (ms)',
             xlabel=f'ms around the worst deadline, {start_s:.2f} s after the start')
    axes.set_yticks([mark for mark in axes.get_yticks() if 0.0 <= mark <= top])
    legend_above(axes)
    return picture(figure, 'worst_second', 'The worst second',
                   'Each target around the latest one, and the action passes below. A red line: '
                   'a text request gave its blocks back in the second before.')
