# SPDX-License-Identifier: Apache-2.0
"""The way of one image through the files, as doc/architecture.md has it."""

from pathlib import Path
import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='the walk begins at a ROS callback')

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = '<!-- by scripts/image_walk.py --write -->\n', '<!-- end -->'


def test_the_page_has_the_walk_as_it_is():
    result = subprocess.run(
        [sys.executable, ROOT / 'scripts' / 'image_walk.py'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    page = (ROOT / 'doc' / 'architecture.md').read_text(encoding='utf-8')
    written = page.split(BEGIN)[1].split(END)[0]
    files = [line for line in result.stdout.splitlines() if line.startswith('| `')]
    assert files and files == [line for line in written.splitlines() if line.startswith('| `')], (
        'run scripts/image_walk.py --write'
    )
