# SPDX-License-Identifier: Apache-2.0
"""Replay tests for users: pytest finds the fixture `oxygen_replay` once the package is installed.

Nothing but pytest is imported before the fixture is used. See doc/replay.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..replay.outputs import ReplayResult


def run_replay(
    bag: str | Path,
    parameters: Mapping[str, object] | None = None,
    *,
    questions: Iterable[tuple[float, str]] = (),
    scene_period: float | None = None,
    start: float = 0.0,
    duration: float | None = None,
    remap: Mapping[str, str] | None = None,
    golden: str | Path | None = None,
    tolerance: float = 0.0,
) -> ReplayResult:
    """Play a recording deterministically; times are seconds of the recording.

    :param bag: rosbag2 folder or storage file.
    :param parameters: of the node, by name, where they are not the defaults; cameras and joints
        are the recording's.
    :param questions: (time since the start, text) of dialogue requests.
    :param scene_period: between scene-graph requests; None: the parameter memory.period_s.
    :param remap: recorded topics that stand for others, by name.
    :param golden: a bag or a JSON summary written by `oxygen replay`, to compare with.
    :param tolerance: of floats when comparing, absolute up to 1 and relative above; 0: bit for
        bit.
    :raises OxygenError: recording, parameters or golden cannot be used.
    :raises AssertionError: the first difference from the golden, with its observation.
    """
    from ..replay.bag import open_bag
    from ..replay.comparison import compare, rows_of
    from ..replay.golden import read_golden
    from ..replay.layout import discover_cameras
    from .replay_settings import make_replay, replay_settings

    expected = None if golden is None else read_golden(Path(golden))
    with open_bag(bag, remap) as recording:
        layout = discover_cameras(recording)
        settings = replay_settings(
            layout,
            parameters,
            questions=questions,
            scene_period=scene_period,
            start=start,
            duration=duration,
        )
        result = make_replay(recording, layout, settings).run()
    if expected is not None:
        found = compare(rows_of(result), expected, tolerance)
        if found is not None:
            raise AssertionError(f'differs from {golden}: {found}')
    return result


@pytest.fixture
def oxygen_replay() -> Callable[..., Any]:
    """Return `run_replay(bag, parameters, ...)`, which plays a recording."""
    return run_replay
