# SPDX-License-Identifier: Apache-2.0
"""The measurements of a checkout: each runs by its name, and what watching costs is judged."""

import json
import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.monitoring import judge

ROOT = Path(__file__).resolve().parents[2]
NAMES = ('attention', 'batching', 'gpu', 'memory', 'monitoring', 'steps')


def run(name, folder, *arguments):
    """Run a measurement from a folder elsewhere, on the package that these tests run on."""
    environment = {
        **os.environ,
        'ROS_DOMAIN_ID': str(1 + os.getpid() % 100),
        'PYTHONPATH': os.pathsep.join([*filter(None, [os.environ.get('PYTHONPATH')]), str(ROOT)]),
    }
    return subprocess.run(
        [sys.executable, '-m', f'benchmarks.{name}', *map(str, arguments)],
        cwd=folder,
        env=environment,
        timeout=240,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize('name', NAMES)
def test_each_says_how_it_is_called(name, tmp_path):
    result = run(name, tmp_path, '--help')
    assert result.returncode == 0, result.stderr
    assert f'benchmarks.{name}' in result.stdout or f'{name}.py' in result.stdout
    assert '--json FILE' in result.stdout


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path):
    result = run('batching', tmp_path, '--json', tmp_path / 'absent' / 'found.json')
    assert result.returncode == 1
    assert result.stderr.startswith('--json: expected a file in an existing folder, got ')
    assert result.stdout == '' and result.stderr.count('\n') == 1


def block(late_ms, num_ticks=500):
    """Return a block of ticks of which 2 % are late."""
    return [late_ms if tick % 50 == 0 else 0.1 for tick in range(num_ticks)]


def test_the_spread_is_that_of_the_blocks_without_and_all_watched_ticks_are_held_against_it():
    found = judge(
        [block(late_ms) for late_ms in (1.0, 3.0, 2.0)],
        [block(late_ms) for late_ms in (0.5, 2.5, 4.0)],
    )
    assert found['spread_ms'] == {'smallest': 1.0, 'largest': 3.0}
    assert found['blocks']['watched'] == [0.5, 2.5, 4.0]
    assert found['blocks_above'] == 1
    watched = np.concatenate([block(late_ms) for late_ms in (0.5, 2.5, 4.0)])
    assert found['p99_ms'] == np.percentile(watched, 99.0)


@pytest.mark.slow
def test_watched_blocks_have_reports_and_the_others_none(tmp_path):
    pytest.importorskip('PyQt5.QtWidgets', reason='needs PyQt5 (extra `monitor`)')
    found_file = tmp_path / 'found.json'
    result = run('monitoring', tmp_path, '--quick', '--duration', 2, '--json', found_file)
    found = json.loads(found_file.read_text())
    [gate] = found['gates'].values()
    assert result.returncode == (0 if gate['holds'] else 1), result.stderr
    assert ('does not hold' in ' '.join(result.stdout.split())) is not gate['holds']
    assert found['monitoring']['reports'] >= 20 and not found['monitoring']['reports_without']
    assert found['monitoring']['window_cpu_share'] > 0.0  # it drew
