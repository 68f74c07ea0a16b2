# SPDX-License-Identifier: Apache-2.0
"""Golden replays: tokens and schedule by hash, floats by a few values with a tolerance."""

from golden_cases import CASES, GENERATED, play
import pytest

from oxygen_ros.replay.comparison import compare, rows_of
from oxygen_ros.replay.golden import read_golden

TOLERANCE = 1e-3  # of sums that another processor makes in another order


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.bag)
def test_a_replay_is_as_its_golden_says(case, request, tmp_path):
    if case.bag != GENERATED:
        request.getfixturevalue('shared')
    found = compare(rows_of(play(case, tmp_path)), read_golden(case.golden), TOLERANCE)
    assert found is None, f'{found}\nAfter a deliberate change: python test/replay/golden_cases.py'
