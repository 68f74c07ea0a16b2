# SPDX-License-Identifier: Apache-2.0
"""The plugin for users: declared, light, and as the example of doc/replay.md says."""

from pathlib import Path
import subprocess
import sys

from made_bags import make_bag, Plan
import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = 'oxygen_ros.commands.pytest_plugin'


def test_the_entry_point_is_declared():
    lines = (ROOT / 'pyproject.toml').read_text().splitlines()
    [start] = [number for number, line in enumerate(lines) if line.endswith('.pytest11]')]
    assert lines[start + 1] == f'"{PLUGIN}" = "{PLUGIN}"'


def test_loading_the_plugin_imports_nothing_heavy():
    code = (
        f'import sys, {PLUGIN}; '
        'print({"torch", "numpy", "rclpy", "rosbags", "cv2"} & set(sys.modules))'
    )
    result = subprocess.run(
        [sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == 'set()\n'


@pytest.mark.slow  # seconds: three interpreters, one after the other
def test_the_example_of_the_document_runs(tmp_path):
    document = (ROOT / 'doc' / 'replay.md').read_text()
    example = document.partition('```python\n')[2].partition('```')[0]
    (tmp_path / 'golden').mkdir()
    bag = make_bag(tmp_path / 'bags' / 'pick_and_place', Plan(num_frames=16))
    subprocess.run(
        [
            sys.executable,
            '-m',
            'oxygen_ros.cli',
            'replay',
            str(bag),
            '--deterministic',
            '--seed',
            '3',
            '--ask',
            '0.5:What do you see?',
            '--scene-period',
            '1',
            '--duration',
            '4',
            '--json',
            str(tmp_path / 'golden' / 'pick_and_place.json'),
        ],
        cwd=ROOT,
        check=True,
    )
    (tmp_path / 'test_robot.py').write_text(example)
    result = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', PLUGIN, 'test_robot.py'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
