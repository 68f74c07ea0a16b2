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
    written = files_by_folder(page.split(BEGIN)[1].split(END)[0])
    assert written, 'expected the table of the walk between its marks, got none'
    assert files_by_folder(result.stdout) == written, 'run scripts/image_walk.py --write'


def files_by_folder(text: str) -> dict[str, set[str]]:
    """Read the table; two threads run at once, so the order of its rows differs between runs."""
    rows = [line.strip('| ').split(' | ') for line in text.splitlines() if line.startswith('| `')]
    return {folder: set(files.split(', ')) for folder, files in rows}
