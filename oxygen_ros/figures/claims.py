# SPDX-License-Identifier: Apache-2.0
"""The project's claims beside the figures that were measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

# Least to most load; rows from the plainest setting to the full one.
LOADS = ('idle', 'dialogue1', 'dialogue4_scene', 'dialogue4_scene_cameras')
ROWS = ('two_process', 'isolated_fifo', 'unmanaged', 'shared_fifo', 'shared_batched', 'full')

Figures = Mapping[str, float]
Limit = tuple[float, str]  # in the unit of the figure, and what makes it another than the claim's


class Outcome(Enum):
    """What a figure says about a claim."""

    MET = 'met'
    NOT_MET = 'not met'
    NO_FIGURE = 'no figure'


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and where its figure is found; the first name that has a figure counts."""

    key: str
    requirement: str
    what: str
    claimed: str
    names: tuple[str, ...]
    limit: float
    unit: str
    at_most: bool  # False: at least
    scale: float = 1.0  # from the figure to the unit
    adjust: Callable[[float, Figures], Limit] | None = None  # to what this machine can do

    def limit_for(self, figures: Figures) -> Limit:
        """Return the limit as this machine and this prefix allow it, and why it is another."""
        return self.adjust(self.limit, figures) if self.adjust else (self.limit, '')

    def is_met(self, value: float, limit: float) -> bool:
        """Return whether a figure is on the right side of a limit."""
        return value <= limit if self.at_most else value >= limit

    @property
    def line(self) -> float:
        """The limit in the unit that is shown."""
        return self.limit * self.scale


@dataclass(frozen=True, slots=True)
class ClaimFigure:
    """A claim and what was found."""

    claim: Claim
    name: str  # of the figure; empty: none
    value: float | None
    outcome: Outcome
    note: str = ''  # why the limit is another than the claim's

    @property
    def text(self) -> str:
        """The figure with its unit."""
        if self.value is None:
            return ''
        return f'{self.value * self.claim.scale:.4g} {self.claim.unit}'.strip()


def _under(pattern: str) -> tuple[str, ...]:
    """Return the names of a figure, the heaviest load first, a recording last."""
    return (
        *(pattern.format(load=load) for load in reversed(LOADS)),
        pattern.format(load='recorded').replace('.recorded.full.', '.recorded.'),
    )


def _kv_limit(limit: float, figures: Figures) -> Limit:
    possible = figures.get('kv.limit', 1.0)
    if possible >= limit:
        return limit, ''
    return possible - 0.005, f'{100.0 * possible:.1f} % is possible with this prefix'


def _wait_limit(limit_ms: float, figures: Figures) -> Limit:
    bare_ms = figures.get('tick.bare.p99_ms', 0.0)
    return limit_ms + bare_ms, f'and {bare_ms:.2g} ms of a bare loop' if bare_ms else ''


def _jitter_limit(limit_ms: float, figures: Figures) -> Limit:
    twice_ms = 2.0 * figures.get('tick.bare.sd_ms', 0.0)
    if twice_ms <= limit_ms:
        return limit_ms, ''
    return twice_ms, f'here {twice_ms:.2g} ms, twice a bare loop'


CLAIMS = (
    Claim(
        'kv_saved',
        'R2',
        'KV memory saved, three tasks on one frame',
        '64.8 %',
        ('kv.bytes.reduction', 'kv.reduction', 'kv.best_reduction'),
        0.648,
        '%',
        False,
        100.0,
        _kv_limit,
    ),
    Claim(
        'action_wait',
        'R4',
        'wait of a due action behind a slice, p99',
        '3.5 ms (one micro-slice)',
        ('preempt.wait_ms.p99', 'preempt.wait_ms.worst_p99'),
        3.5,
        'ms',
        True,
        adjust=_wait_limit,
    ),
    Claim(
        'on_time',
        'R5',
        'control ticks on time',
        '99.4 %',
        _under('tick.{load}.full.on_time'),
        0.994,
        '%',
        False,
        100.0,
    ),
    Claim(
        'jitter_sd',
        'R5',
        'jitter, standard deviation',
        '0.4 ms',
        _under('tick.{load}.full.sd_ms'),
        0.4,
        'ms',
        True,
        adjust=_jitter_limit,
    ),
    Claim(
        'ttft_p50',
        'R6',
        'time to first token, p50',
        '200 ms',
        _under('dialogue.{load}.ttft_ms.p50'),
        200.0,
        'ms',
        True,
    ),
    Claim(
        'ttft_p99',
        'R6',
        'time to first token, p99',
        '400 ms',
        _under('dialogue.{load}.ttft_ms.p99'),
        400.0,
        'ms',
        True,
    ),
    Claim(
        'scene_period',
        'R7',
        'time between two scene-graph updates, p50',
        '1 to 5 s',
        (*_under('dialogue.{load}.scene_gap_s.p50'), 'scene.period_s.p50'),
        5.0,
        's',
        True,
    ),
    Claim(
        'cycle_speedup',
        'R8',
        'speed-up of a three-task cycle',
        'up to 3.7 (RTX 4090); 2.0 is our gate',
        ('cycle.speedup',),
        2.0,
        'x',
        False,
    ),
    Claim(
        'tokens_per_s',
        'R8',
        'text tokens per second',
        '200 (RTX 4090)',
        _under('dialogue.{load}.tokens_per_s'),
        200.0,
        'tokens/s',
        False,
    ),
    Claim(
        'actions_per_s',
        'R8',
        'actions per second (chunks times horizon)',
        '70 (RTX 4090)',
        ('action.actions_per_s',),
        70.0,
        'actions/s',
        False,
    ),
    Claim(
        'chunks_per_s',
        'R8',
        'chunks per second',
        'about 7 (RTX 4090)',
        ('action.chunks_per_s',),
        7.0,
        'chunks/s',
        False,
    ),
)


CLAIM: Mapping[str, Claim] = {claim.key: claim for claim in CLAIMS}
"""The claims by key."""


def compare(figures: Figures) -> list[ClaimFigure]:
    """Return what was measured of each claim."""
    found = []
    for claim in CLAIMS:
        name = next((name for name in claim.names if name in figures), '')
        if not name:
            found.append(ClaimFigure(claim, '', None, Outcome.NO_FIGURE))
            continue
        value = figures[name]
        limit, note = claim.limit_for(figures)
        outcome = Outcome.MET if claim.is_met(value, limit) else Outcome.NOT_MET
        found.append(ClaimFigure(claim, name, value, outcome, note))
    return found
