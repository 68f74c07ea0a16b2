# SPDX-License-Identifier: Apache-2.0
"""The plots of a recording: what happened when."""

from __future__ import annotations

import numpy as np

from ..figures.latency_fields import growth
from ..figures.thresholds import Level
from ..figures.ticks import ON_TIME_MS
from .colours import BLUE, GREEN, GREY, LEVELS, ORANGE, PURPLE, SERIES, SKY
from .drawing import canvas, claim_line, legend_above, Picture, picture, plain_log_axis
from .recorded_figures import armed_ticks, first_token_ms, on_time
from .recording import Float64Array, Recording
from .worst_second import worst_second

_MAX_POINTS = 4000
_MIB = 2.0**20
_STAGES = (
    ('vision', 'vision_ms', SKY),
    ('prefill', 'prefill_ms', BLUE),
    ('action pass', 'action_pass_ms', ORANGE),
    ('decode step', 'decode_step_ms', GREEN),
)


def pictures_of(recording: Recording, max_age_ms: float) -> list[Picture]:
    """Return the plots that the recording has figures for."""
    pictures = []
    if recording.tick_ns:
        pictures += [
            _jitter(recording),
            _missed(recording, max_age_ms),
            worst_second(recording, max_age_ms),
        ]
    if recording.latency_ns:
        pictures += [_stages(recording), _first_token(recording), _kv(recording)]
    if recording.camera_ages or recording.tick_ns:
        pictures.append(_ages(recording))
    return pictures


def _jitter(recording: Recording) -> Picture:
    figure, (over_time, spread) = canvas(columns=2, widths=(2.4, 1.0))
    lateness_ms = recording.tick_table()[:, 1]
    times_s = recording.seconds(recording.tick_ns)
    worst_s, worst_ms = _columns(times_s, lateness_ms)
    over_time.fill_between(worst_s, 0.0, worst_ms, color=BLUE, alpha=0.25, linewidth=0)
    over_time.plot(worst_s, worst_ms, color=BLUE, linewidth=0.8, label='lateness, worst')
    if recording.latency_ns:
        over_time.plot(
            recording.seconds(recording.latency_ns),
            recording.latency('jitter_sd_ms'),
            color=ORANGE,
            linewidth=1.2,
            label='standard deviation over 1 s',
        )
    over_time.axhline(
        ON_TIME_MS,
        color=LEVELS[Level.BAD],
        linestyle='--',
        linewidth=1.0,
        label='limit of on time',
    )
    over_time.set(xlabel='time (s)', ylabel='ms', ylim=(0.0, None), xlim=(0.0, _end_s(recording)))
    legend_above(over_time, 3)
    sorted_ms = np.sort(lateness_ms)
    share_above = 1.0 - np.arange(len(sorted_ms)) / len(sorted_ms)
    spread.step(np.maximum(sorted_ms, 1e-3), share_above, color=BLUE, where='pre')
    spread.axvline(ON_TIME_MS, color=LEVELS[Level.BAD], linestyle='--', linewidth=1.0)
    spread.set(xscale='log', xlabel='lateness (ms)', ylabel='share of ticks above')
    spread.xaxis.set_major_formatter('{x:g}')
    plain_log_axis(spread)
    return picture(
        figure,
        'jitter',
        'Jitter of the control tick',
        'Lateness of each published target against its deadline: over time, and the '
        'share of ticks that were later than a given lateness.',
    )


def _missed(recording: Recording, max_age_ms: float) -> Picture:
    figure, (axes,) = canvas(2.3)
    table = recording.tick_table()
    times_s = recording.seconds(recording.tick_ns)
    gaps = np.clip(np.diff(table[:, 0], prepend=table[0, 0] - 1.0) - 1.0, 0.0, None)
    held = table[:, 4] * (table[:, 3] > 0.0)
    late = (1.0 - on_time(table, max_age_ms)) * (table[:, 4] == 0.0)
    width_s = max(1.0, np.ceil(recording.duration_s / 120.0))
    edges_s = np.arange(0.0, recording.duration_s + width_s, width_s)
    below = np.zeros(max(1, len(edges_s) - 1))
    for label, colour, weights in (
        ('skipped', LEVELS[Level.BAD], gaps),
        ('held', PURPLE, held),
        ('late or from an old observation', ORANGE, late),
    ):
        heights = np.histogram(times_s, edges_s, weights=weights)[0]
        axes.bar(
            edges_s[:-1],
            heights,
            width_s * 0.9,
            below,
            align='edge',
            color=colour,
            label=f'{label}: {weights.sum():.0f}',
        )
        below = below + heights
    axes.set(
        xlabel='time (s)',
        ylabel=f'ticks in {width_s:.0f} s',
        xlim=(0.0, _end_s(recording)),
        ylim=(0.0, max(1.0, below.max() * 1.1)),
    )
    legend_above(axes, 3)
    return picture(
        figure,
        'missed',
        'Deadlines that were not met',
        f'Of {len(table)} targets. Old: the observation is more than '
        f'{max_age_ms:g} ms older than the deadline.',
    )


def _stages(recording: Recording) -> Picture:
    figure, (axes,) = canvas()
    times_s = recording.seconds(recording.latency_ns)
    values = [np.nan_to_num(recording.latency(field)) for _, field, _ in _STAGES]
    axes.stackplot(
        times_s,
        values,
        labels=[label for label, _, _ in _STAGES],
        colors=[colour for _, _, colour in _STAGES],
        alpha=0.8,
    )
    axes.plot(
        times_s,
        recording.latency('action_wait_p99_ms'),
        color=LEVELS[Level.BAD],
        linewidth=1.0,
        label='wait of a due action, p99',
    )
    axes.set(xlabel='time (s)', ylabel='ms', xlim=(0.0, _end_s(recording)), ylim=(0.0, None))
    legend_above(axes)
    return picture(
        figure,
        'stages',
        'Times of the stages',
        'Medians of each second on top of each other: vision of one camera, prefill of '
        'a prefix, an action pass, one decode step of all text requests. Line: how '
        'long a due action waited behind a slice.',
    )


def _first_token(recording: Recording) -> Picture:
    figure, (axes,) = canvas(2.4)
    times_s, values_ms = first_token_ms(recording)
    axes.vlines(times_s, 0.0, values_ms, color=PURPLE, linewidth=1.2)
    axes.plot(
        times_s, values_ms, 'o', color=PURPLE, markersize=5, label=f'dialogues: {len(values_ms)}'
    )
    claim_line(axes, 'ttft_p99')
    axes.set(xlabel='time (s)', ylabel='ms', xlim=(0.0, _end_s(recording)), ylim=(0.0, None))
    rate = axes.twinx()
    rate.grid(visible=False)
    rate.plot(
        recording.seconds(recording.latency_ns),
        recording.latency('tokens_per_s'),
        color=GREEN,
        linewidth=1.0,
        alpha=0.8,
    )
    rate.set_ylabel('tokens/s', color=GREEN)
    rate.set_ylim(0.0, None)
    rate.spines[:].set_visible(False)
    rate.tick_params(colors=GREEN, length=0)
    legend_above(axes)
    return picture(
        figure,
        'first_token',
        'Time to first token',
        'From the goal to the first token, inside the node, and the rate of all text '
        'requests (green).',
    )


def _kv(recording: Recording) -> Picture:
    figure, (memory, blocks) = canvas(columns=2, widths=(1.6, 1.0))
    times_s = recording.seconds(recording.latency_ns)
    classes = ('prefix', 'action', 'text')
    sizes = [np.nan_to_num(recording.latency(f'kv_bytes_{name}')) / _MIB for name in classes]
    memory.stackplot(
        times_s, *sizes, colors=(GREEN, BLUE, ORANGE), alpha=0.6, linewidth=0, labels=classes
    )
    memory.plot(
        times_s,
        recording.latency('kv_bytes_isolated') / _MIB,
        color=GREY,
        linewidth=1.2,
        label='what isolated caches would take',
    )
    memory.set(xlabel='time (s)', ylabel='MiB', xlim=(0.0, _end_s(recording)), ylim=(0.0, None))
    legend_above(memory)
    blocks.plot(
        times_s,
        recording.latency('kv_blocks_free'),
        color=BLUE,
        linewidth=1.0,
        label='free blocks',
    )
    lost = np.flatnonzero(growth(recording.latency('preemptions')) > 0.0)
    if len(lost):
        blocks.plot(
            times_s[lost],
            recording.latency('kv_blocks_free')[lost],
            'v',
            color=LEVELS[Level.BAD],
            label='text gave blocks back',
        )
    blocks.set(xlabel='time (s)', ylabel='blocks', xlim=(0.0, _end_s(recording)), ylim=(0.0, None))
    legend_above(blocks)
    return picture(
        figure,
        'kv',
        'KV cache',
        'Memory that live tasks refer to, each page once, '
        'and what the same tasks would take with a cache each; free blocks.',
    )


def _ages(recording: Recording) -> Picture:
    figure, (axes,) = canvas()
    table = recording.tick_table()
    if len(table):
        worst_s, worst_ms = _columns(
            recording.seconds(recording.tick_ns), np.nan_to_num(table[:, 2])
        )
        axes.fill_between(
            worst_s,
            0.0,
            worst_ms,
            color=GREY,
            alpha=0.25,
            linewidth=0,
            label='observation behind a target, oldest',
        )
    for index, (name, readings) in enumerate(sorted(recording.camera_ages.items())):
        worst_s, worst_ms = _columns(
            recording.seconds([time_ns for time_ns, _ in readings]),
            np.array([age_ms for _, age_ms in readings]),
            600,
        )
        axes.plot(worst_s, worst_ms, color=SERIES[index % len(SERIES)], linewidth=0.9, label=name)
    axes.set(xlabel='time (s)', ylabel='ms', xlim=(0.0, _end_s(recording)), ylim=(0.0, None))
    legend_above(axes, 5)
    return picture(
        figure,
        'ages',
        'Age of images and observations',
        "Age of each camera's image at the end of the action pass that used it, and "
        'of the observation at the deadline of the target made from it.',
    )


def _end_s(recording: Recording) -> float:
    return max(recording.duration_s, 1.0)


def _columns(
    times_s: Float64Array, values: Float64Array, points: int = _MAX_POINTS
) -> tuple[Float64Array, Float64Array]:
    """Return the worst of each of `points` stretches of equal count."""
    if len(values) <= points:
        return times_s, values
    firsts = np.linspace(0, len(values), points, endpoint=False).astype(np.int64)
    return times_s[firsts], np.maximum.reduceat(values, firsts)


def drops_text(recording: Recording) -> str:
    """Return why targets were held, most frequent first."""
    table = armed_ticks(recording)
    reasons = ', '.join(
        f'{reason} {count}' for reason, count in recording.hold_reasons.most_common()
    )
    return f'{int(table[:, 4].sum())} of {len(table)} held' + (f': {reasons}' if reasons else '')
