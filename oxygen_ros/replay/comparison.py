# SPDX-License-Identifier: Apache-2.0
"""Two replays compared: the first output that differs, and the observation that it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .outputs import ReplayResult, TOPICS
from .rows import difference, make_row, Row

OutputRows = Mapping[str, list[Row]]
"""The outputs of a replay by topic, each in order of time."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first output that is not as it was."""

    topic: str
    index: int  # of the output among those of its topic, from 0
    stamp_ns: int  # since the start of the replay
    observation_id: int  # 0: it came from none
    what: str

    def __str__(self) -> str:
        return (
            f'observation {self.observation_id}, {self.topic}, message {self.index} at '
            f'{self.stamp_ns * 1e-9:.3f} s: {self.what}'
        )


def rows_of(result: ReplayResult) -> dict[str, list[Row]]:
    """Return a replay's outputs as rows."""
    rows: dict[str, list[Row]] = {}
    for output in result.outputs:
        rows.setdefault(output.topic, []).append(
            make_row(output.stamp_ns - result.start_ns, output.topic, output.message)
        )
    return rows


def compare(new: OutputRows, golden: OutputRows, tolerance: float = 0.0) -> Difference | None:
    """Return the first difference in time, None where there is none.

    :param tolerance: of floats, absolute up to 1 and relative above; 0: bit for bit.
    """
    found = [
        difference
        for topic in TOPICS
        if (difference := _first(topic, new.get(topic, []), golden.get(topic, []), tolerance))
        is not None
    ]
    return min(found, key=lambda entry: entry.stamp_ns, default=None)


def _first(topic: str, new: list[Row], golden: list[Row], tolerance: float) -> Difference | None:
    for index, (row, expected) in enumerate(zip(new, golden)):
        what = difference(row, expected, tolerance)
        if what:
            stamp_ns = min(row.stamp_ns, expected.stamp_ns)
            return Difference(topic, index, stamp_ns, expected.observation_id, what)
    if len(new) == len(golden):
        return None
    index = min(len(new), len(golden))
    extra = (new if len(new) > len(golden) else golden)[index]
    return Difference(
        topic,
        index,
        extra.stamp_ns,
        extra.observation_id,
        f'expected {len(golden)} messages, got {len(new)}',
    )
