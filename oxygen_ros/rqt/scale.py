# SPDX-License-Identifier: Apache-2.0
"""Axes and lines in numbers: round marks, gaps, and as many points as there are pixels."""

from __future__ import annotations

from itertools import pairwise
import math

import numpy as np

from .history import Float64Array

GAP_S = 2.5  # readings further apart are not joined by a line; ages of cameras come each second


def marks(top: float, wanted: int = 4) -> list[float]:
    """Return round numbers from 0 up to the first that is at least `top`; about `wanted` steps."""
    if not 0.0 < top < math.inf:
        return [0.0, 1.0]
    rough = top / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        factor * power
        for factor in (1.0, 2.0, 2.5, 5.0, 10.0)
        if factor * power >= rough * (1.0 - 1e-9)
    )
    return [step * index for index in range(math.ceil(top / step - 1e-9) + 1)]


def mark_text(value: float, step: float) -> str:
    """Return the text beside a mark, with the digits that the step needs."""
    digits = 0 if step == int(step) else 1 if (step * 10.0).is_integer() else 2
    return f'{value:,.{digits}f}'


def runs(
    times_s: Float64Array, values: Float64Array, gap_s: float = GAP_S
) -> list[tuple[Float64Array, Float64Array]]:
    """Cut a line where values are not finite or reports were missing."""
    known = np.isfinite(values)
    times_s, values = times_s[known], values[known]
    if not len(times_s):
        return []
    # Where a value in between is unknown the distance in time is small: count places instead.
    places = np.flatnonzero(known)
    cuts = np.flatnonzero((np.diff(times_s) > gap_s) | (np.diff(places) > 1)) + 1
    return list(zip(np.split(times_s, cuts), np.split(values, cuts)))


def thin(
    times_s: Float64Array, values: Float64Array, columns: int
) -> tuple[Float64Array, Float64Array]:
    """Keep lowest and highest value of each pixel column, so that no spike is lost."""
    if len(times_s) <= 2 * columns or columns < 1:
        return times_s, values
    edges = np.linspace(0, len(values), columns + 1).astype(np.int64)
    kept: list[int] = []
    for first, last in pairwise(edges.tolist()):
        part = values[first:last]
        kept.extend(sorted({first + int(part.argmin()), first + int(part.argmax())}))
    return times_s[kept], values[kept]
