# SPDX-License-Identifier: Apache-2.0
"""The golden replays: three recorded bags and a generated one; run it to write their goldens.

    python test/replay/golden_cases.py

Do so only after a deliberate change of results or schedule, and look at what `git diff` shows.
"""

from dataclasses import dataclass, field
from pathlib import Path
import sys
import tempfile

from made_bags import make_bag, Plan

from oxygen_ros.commands.pytest_plugin import run_replay
from oxygen_ros.replay.golden import write_summary

FOLDER = Path(__file__).resolve().parent / 'golden'
BAGS = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'bags'
GENERATED = 'generated'


@dataclass(frozen=True)
class Case:
    """One golden replay."""

    bag: str  # below the shared bags; GENERATED: made on the spot
    settings: dict = field(default_factory=dict)

    @property
    def golden(self):
        return FOLDER / f'{self.bag.rpartition("/")[2]}.json'


ASK = ((0.2, 'What do you see?'),)
CASES = (
    Case(GENERATED, {'questions': ASK, 'scene_period': 0.3}),
    Case('real/bridge_3cam_mcap', {'questions': ASK, 'scene_period': 0.5, 'duration': 1.2}),
    Case('real/bridge_3cam_raw_mcap', {'start': 3.0, 'duration': 0.8, 'scene_period': 0.0}),
    Case('real/donkey_compressed_mcap', {'questions': ASK, 'scene_period': 0.0, 'duration': 0.6}),
)


def play(case, folder):
    """Play a case; `folder` takes the generated bag."""
    path = BAGS / case.bag
    if case.bag == GENERATED:
        path = make_bag(Path(folder) / GENERATED, Plan(num_frames=10))
    return run_replay(path, **case.settings)


def main():
    """Write all goldens."""
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            write_summary(play(case, folder), case.golden)
        print(case.golden)
    return 0


if __name__ == '__main__':
    sys.exit(main())
