# SPDX-License-Identifier: Apache-2.0
"""The plots of a benchmark: rows of settings side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..figures.claims import Figures, LOADS, ROWS
from .colours import BLUE, GREEN, GREY, ORANGE, PINK, PURPLE, SKY
from .drawing import (
    canvas,
    claim_line,
    legend_above,
    Picture,
    picture,
    plain_log_axis,
    shared_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIB = 2.0**20
_FOOT_MS = 0.03
# The same setting has the same colour in every plot.
_COLOURS = {
    'two_process': SKY,
    'isolated_fifo': BLUE,
    'unmanaged': ORANGE,
    'shared_fifo': PURPLE,
    'shared_batched': PINK,
    'full': GREEN,
    'p50': BLUE,
    'p99': ORANGE,
    'tokens_per_s': GREEN,
}
_SPREADS = (
    ('wait of a due action', 'preempt.wait_ms'),
    ('action pass', 'action.pass_ms'),
    ('ingest of an image', 'ingest.ms'),
)


def pictures_of(figures: Figures) -> list[Picture]:
    """Return the plots that there are figures for."""
    makers = (_ticks, _on_time, _cycles, _kv, _first_token, _waits)
    return [made for maker in makers if (made := maker(figures)) is not None]


def _ticks(figures: Figures) -> Picture | None:
    loads = [load for load in _names_under(figures, 'tick', LOADS) if load in LOADS]
    if not loads:
        return None
    figure, axes = canvas(3.4, columns=2)
    for panel, key, title in zip(axes, ('sd_ms', 'p99_ms'), ('standard deviation', 'p99')):
        rows = _rows(figures, 'tick', loads, key)
        _grouped(panel, figures, loads, rows, 'tick.{load}.{row}.' + key)
        bare = figures.get(f'tick.bare.{key}')
        if bare is not None:
            panel.axhline(
                bare, color=GREY, linestyle=':', linewidth=1.4, label='bare sleeping loop'
            )
        if key == 'sd_ms':
            claim_line(panel, 'jitter_sd')
        panel.set(ylabel=f'jitter, {title} (ms)')
        plain_log_axis(panel)
        # A logarithmic bar has no natural foot; a common one lets two pages be compared.
        panel.set_ylim(bottom=min(_FOOT_MS, panel.get_ylim()[0]))
    shared_legend(figure, axes[0])
    return picture(
        figure,
        'ticks',
        'Jitter of the control tick',
        'Lateness against the absolute deadline, by load and setting; logarithmic.',
    )


def _on_time(figures: Figures) -> Picture | None:
    loads = [load for load in _names_under(figures, 'tick', LOADS) if load in LOADS]
    rows = _rows(figures, 'tick', loads, 'on_time')
    if not rows:
        return None
    figure, (axes,) = canvas(2.7)
    percent = {name: 100.0 * value for name, value in figures.items() if name.endswith('.on_time')}
    _grouped(axes, percent, loads, rows, 'tick.{load}.{row}.on_time', texts=True)
    claim_line(axes, 'on_time')
    axes.set(ylabel='ticks on time (%)', ylim=(0.0, 112.0))
    legend_above(axes)
    return picture(
        figure,
        'on_time',
        'Ticks on time',
        'Published within 2 ms of the deadline, not held, from a fresh observation.',
    )


def _cycles(figures: Figures) -> Picture | None:
    rows = [
        row for row in _names_under(figures, 'cycle_ms', ROWS) if f'cycle_ms.{row}.p50' in figures
    ]
    if not rows:
        return None
    figure, (axes,) = canvas(0.9 + 0.42 * len(rows))
    values = np.array([figures[f'cycle_ms.{row}.p50'] for row in rows])
    p99 = np.array([figures.get(f'cycle_ms.{row}.p99', value) for row, value in zip(rows, values)])
    places = np.arange(len(rows))[::-1]
    axes.barh(places, values, 0.62, color=[GREEN if row == 'full' else BLUE for row in rows])
    axes.hlines(places, values, p99, color=GREY, linewidth=2.0)
    for place, value, far in zip(places, values, p99):
        axes.annotate(
            f'{value:.1f} ms',
            (max(value, far), place),
            (6, 0),
            va='center',
            textcoords='offset points',
        )
    axes.set_yticks(places, rows)
    axes.grid(visible=False, axis='y')
    axes.set(xlabel='ms a cycle (bar: p50, line: to p99)', xlim=(0.0, p99.max() * 1.15))
    speedup = figures.get('cycle.speedup')
    more = '' if speedup is None else f' Full is {speedup:.2f} times as fast as isolated_fifo'
    predicted = figures.get('cycle.predicted_speedup')
    if speedup is not None:
        more += '.' if predicted is None else f'; predicted from the stages: {predicted:.2f}.'
    return picture(
        figure,
        'cycles',
        'One cycle of three tasks',
        f'Action, dialogue and scene graph on the same weights and kernels.{more}',
    )


def _kv(figures: Figures) -> Picture | None:
    names = [
        name
        for name in _names_under(figures, 'kv.bytes', ('isolated', 'shared'))
        if name != 'reduction' and f'kv.bytes.{name}' in figures
    ]
    if not names:
        return None
    figure, (axes,) = canvas(0.9 + 0.42 * len(names))
    values = np.array([figures[f'kv.bytes.{name}'] for name in names]) / _MIB
    places = np.arange(len(names))[::-1]
    colours = [GREY if name == 'isolated' else GREEN for name in names]
    axes.barh(places, values, 0.62, color=colours)
    for place, value in zip(places, values):
        axes.annotate(
            f'{value:.2f} MiB', (value, place), (6, 0), va='center', textcoords='offset points'
        )
    axes.set_yticks(places, names)
    axes.grid(visible=False, axis='y')
    axes.set(xlabel='MiB', xlim=(0.0, values.max() * 1.18))
    saved = figures.get('kv.bytes.reduction', figures.get('kv.reduction'))
    text = '' if saved is None else f' Saved: {100.0 * saved:.2f} %.'
    return picture(
        figure,
        'kv',
        'KV memory of three tasks on one frame',
        f'Bytes that live tasks refer to, each page counted once.{text}',
    )


def _first_token(figures: Figures) -> Picture | None:
    loads = [
        load
        for load in _names_under(figures, 'dialogue', LOADS)
        if f'dialogue.{load}.ttft_ms.p50' in figures
    ]
    if not loads:
        return None
    figure, axes = canvas(2.9, columns=2, widths=(1.5, 1.0))
    _grouped(axes[0], figures, loads, ['p50', 'p99'], 'dialogue.{load}.ttft_ms.{row}', texts=True)
    claim_line(axes[0], 'ttft_p99')
    axes[0].set(ylabel='time to first token (ms)')
    legend_above(axes[0])
    _grouped(axes[1], figures, loads, ['tokens_per_s'], 'dialogue.{load}.{row}', texts=True)
    axes[1].set(ylabel='tokens/s')
    return picture(
        figure,
        'first_token',
        'Dialogue under load',
        'From the goal being sent to the first feedback, at the client; rate of text.',
    )


def _waits(figures: Figures) -> Picture | None:
    found = [(label, key) for label, key in _SPREADS if f'{key}.p50' in figures]
    if not found:
        return None
    figure, (axes,) = canvas(1.0 + 0.5 * len(found))
    places = np.arange(len(found))[::-1]
    for offset, part, colour in ((0.18, 'p50', BLUE), (-0.18, 'p99', ORANGE)):
        values = [figures.get(f'{key}.{part}', np.nan) for _, key in found]
        axes.barh(places + offset, values, 0.34, color=colour, label=part)
        for place, value in zip(places, values):
            if np.isfinite(value):
                axes.annotate(
                    f'{value:.2f}',
                    (value, place + offset),
                    (5, 0),
                    va='center',
                    textcoords='offset points',
                    fontsize=8,
                )
    axes.set_yticks(places, [label for label, _ in found])
    axes.grid(visible=False, axis='y')
    axes.set(xlabel='ms', xlim=(0.0, axes.get_xlim()[1] * 1.08))
    legend_above(axes)
    return picture(
        figure,
        'waits',
        'Waits and passes under the heaviest load',
        'Wait of a due action behind a slice, the action pass, decoding of an image.'
        f'{_frames(figures)}',
    )


def _frames(figures: Figures) -> str:
    if 'ingest.frames_in' not in figures or 'ingest.frames_out' not in figures:
        return ''
    return (
        f' Images received: {figures["ingest.frames_in"]:,.0f}, decoded: '
        f'{figures["ingest.frames_out"]:,.0f}, the others superseded by newer ones.'
    )


def _names_under(figures: Figures, prefix: str, known: tuple[str, ...]) -> list[str]:
    """Return the names directly under a prefix: the known ones in their order, then others."""
    dotted = f'{prefix}.'
    found = {name[len(dotted) :].split('.', 1)[0] for name in figures if name.startswith(dotted)}
    return [name for name in known if name in found] + sorted(found - set(known))


def _rows(figures: Figures, prefix: str, loads: Sequence[str], key: str) -> list[str]:
    found = {
        row
        for load in loads
        for row in _names_under(figures, f'{prefix}.{load}', ROWS)
        if f'{prefix}.{load}.{row}.{key}' in figures
    }
    return [row for row in ROWS if row in found] + sorted(found - set(ROWS))


def _grouped(
    axes: Axes,
    figures: Figures,
    loads: Sequence[str],
    rows: Sequence[str],
    pattern: str,
    texts: bool = False,
) -> None:
    width = min(0.8 / max(1, len(rows)), 0.16 * len(loads))
    places = np.arange(len(loads))
    for index, row in enumerate(rows):
        values = [figures.get(pattern.format(load=load, row=row), np.nan) for load in loads]
        left = places + (index + 0.5 - len(rows) / 2.0) * width
        axes.bar(left, values, width * 0.92, color=_COLOURS.get(row, GREY), label=row)
        for place, value in zip(left, values):
            if texts and np.isfinite(value):
                axes.annotate(
                    f'{value:.4g}',
                    (place, value),
                    (0, 2),
                    ha='center',
                    textcoords='offset points',
                    fontsize=7.5,
                )
    axes.set_xticks(places, [load.replace('_', '\n') for load in loads])
    axes.set_xlim(-0.55, len(loads) - 0.45)
    axes.grid(visible=False, axis='x')
