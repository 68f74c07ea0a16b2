# SPDX-License-Identifier: Apache-2.0
"""A process killed while it writes leaves a store that opens and a log that verifies."""

from __future__ import annotations

import json
from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
RIG = Path(__file__).with_name('kill_rig.py')


def test_fifty_kills_lose_no_committed_row_and_no_synced_record(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(RIG), str(tmp_path)],
        cwd=ROOT,
        text=True,
        env={'PYTHONPATH': str(ROOT)},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts['kills'] == 50
    assert counts['missing'] == 0
    # By the plan of the kills; what was told meanwhile comes on top.
    assert counts['committed'] >= 98 and counts['synced'] >= 41
