# SPDX-License-Identifier: Apache-2.0
"""The figures of a benchmark's JSON, by dotted name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import json
from pathlib import Path
from typing import Any

from ..errors import OxygenError


def read_bench(path: Path) -> tuple[dict[str, float], dict[str, str]]:
    """Return the numbers and the texts of a benchmark's JSON, by dotted name.

    :raises OxygenError: the file is not JSON, or not an object with numbers in it.
    """
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise OxygenError(f'{path}: expected a JSON file of a benchmark, got: {error}') from None
    if not isinstance(content, dict):
        raise OxygenError(f'{path}: expected a JSON object, got {type(content).__name__}')
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for name, value in _leaves(content, ''):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            texts[name] = str(value)
        else:
            numbers[name] = value
    if not numbers:
        raise OxygenError(f'{path}: expected figures, got no number')
    return numbers, texts


def names_under(figures: Mapping[str, Any], prefix: str, known: tuple[str, ...]) -> list[str]:
    """Return the names directly under a prefix: the known ones in their order, then others."""
    dotted = f'{prefix}.'
    found = {name[len(dotted) :].split('.', 1)[0] for name in figures if name.startswith(dotted)}
    return [name for name in known if name in found] + sorted(found - set(known))


def _leaves(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f'{prefix}.{key}' if prefix else str(key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _leaves(part, f'{prefix}.{index}' if prefix else str(index))
    else:
        yield prefix, value
