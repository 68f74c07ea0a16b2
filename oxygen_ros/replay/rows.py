# SPDX-License-Identifier: Apache-2.0
"""Outputs as rows to compare: what must be equal, and numbers that may differ a little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
import hashlib
import math
from typing import Any

import numpy as np

from .outputs import observation_of

Value = int | float | str | bool
_DIGITS = 9  # of the numbers that stand for all floats of a message


@dataclass(frozen=True, slots=True)
class Row:
    """One output.

    A row of a summary has no fields: only a hash of what must be equal, and first, last and mean
    of its floats.
    """

    stamp_ns: int  # since the start of the replay
    observation_id: int
    digest: str
    floats: tuple[float, ...]
    exact: dict[str, Value] | None = None  # by field
    numbers: dict[str, float] | None = None  # by field


def make_row(stamp_ns: int, topic: str, message: Any) -> Row:
    """Return a message as a row."""
    exact: dict[str, Value] = {}
    numbers: dict[str, float] = {}
    for path, value in _walk('', message):
        if isinstance(value, float):
            numbers[path] = value
        else:
            exact[path] = value
    text = '\n'.join(f'{path}={value!r}' for path, value in exact.items())
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Row(
        stamp_ns,
        observation_of(topic, message),
        digest,
        _short(list(numbers.values())),
        exact,
        numbers,
    )


def _short(values: list[float]) -> tuple[float, ...]:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ()
    numbers = (known[0], known[-1], math.fsum(known) / len(known))
    return tuple(float(f'{number:.{_DIGITS}g}') for number in numbers)


def _walk(path: str, value: Any) -> Iterator[tuple[str, Value]]:
    if is_dataclass(value):
        for field in fields(value):
            if field.name != '__msgtype__':
                yield from _walk(
                    f'{path}.{field.name}' if path else field.name, getattr(value, field.name)
                )
    elif isinstance(value, (list, tuple, np.ndarray)):
        items = value.tolist() if isinstance(value, np.ndarray) else value
        yield f'{path}.size', len(items)
        for index, item in enumerate(items):
            yield from _walk(f'{path}[{index}]', item)
    elif isinstance(value, np.generic):
        yield path, value.item()
    else:
        yield path, value


def difference(new: Row, golden: Row, tolerance: float) -> str:
    """Return what differs, golden value first; empty: nothing.

    :param tolerance: of floats, absolute up to 1 and relative above; 0: bit for bit.
    """
    if new.stamp_ns != golden.stamp_ns:
        return f'time: expected {golden.stamp_ns * 1e-9:.6f} s, got {new.stamp_ns * 1e-9:.6f} s'
    if new.exact is None or golden.exact is None:
        if new.digest != golden.digest:
            return f'hash of all but floats: expected {golden.digest}, got {new.digest}'
        names = ('first float', 'last float', 'mean of floats')
        return _first_number(
            dict(zip(names, new.floats)), dict(zip(names, golden.floats)), tolerance
        )
    for path, expected in golden.exact.items():
        got = new.exact.get(path)
        if got != expected:
            return f'{path}: expected {_shown(expected)}, got {_shown(got)}'
    for path in new.exact.keys() - golden.exact.keys():
        return f'{path}: expected none, got {_shown(new.exact[path])}'
    return _first_number(new.numbers or {}, golden.numbers or {}, tolerance)


def _first_number(new: dict[str, float], golden: dict[str, float], tolerance: float) -> str:
    for path, expected in golden.items():
        got = new.get(path, math.nan)
        if not _close(got, expected, tolerance):
            return f'{path}: expected {expected!r}, got {got!r}'
    return '' if len(new) == len(golden) else f'expected {len(golden)} floats, got {len(new)}'


def _close(got: float, expected: float, tolerance: float) -> bool:
    if math.isnan(got) or math.isnan(expected):
        return math.isnan(got) and math.isnan(expected)
    return got == expected or abs(got - expected) <= tolerance * max(1.0, abs(expected))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f'{text[:160]}...'
