# SPDX-License-Identifier: Apache-2.0
"""`oxygen bench monitoring` and `oxygen bench load`: their verdict, and that they run."""

import json
import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest

from oxygen_ros.bench.monitoring import judge
from oxygen_ros.cli import main
from oxygen_ros.replay.bag import open_bag
from oxygen_ros.report.command import read_bench
from oxygen_ros.report.recorded_figures import figures_of
from oxygen_ros.report.recording import read_recording

sys.path.append(str(Path(__file__).resolve().parents[1] / 'report'))
LOAD = 'dialogue4_scene_cameras'


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


@pytest.mark.parametrize(
    'arguments, because',
    [
        (['kv', '--duration', '3'], '--duration: expected load or monitoring'),
        (
            ['load', '--duration', '0'],
            '--duration: expected load or monitoring, and a number above 0',
        ),
        (['monitoring', '--record', 'x'], '--record: expected load, got monitoring'),
        (['--record', 'x'], '--record: expected load, got the suite'),
        (['load', '--quick'], '--quick: expected the suite or monitoring, got load'),
        (['load', '--record', '.'], '--record: expected a new folder, got .: File exists'),
    ],
)
def test_options_of_other_measurements_are_refused_in_one_line(arguments, because, capsys):
    assert main(['bench', *arguments]) == 1
    err = capsys.readouterr().err
    assert because in err and err.count('\n') == 1


def run(*arguments):
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(1 + os.getpid() % 100)}
    return subprocess.run(
        [sys.executable, '-m', 'oxygen_ros.cli', 'bench', *map(str, arguments)],
        env=environment,
        timeout=240,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_watched_blocks_have_reports_and_the_others_none(tmp_path):
    pytest.importorskip('PyQt5.QtWidgets', reason='needs PyQt5 (extra `monitor`)')
    result = run('monitoring', '--quick', '--duration', 2, '--json', tmp_path / 'found.json')
    found = json.loads((tmp_path / 'found.json').read_text())
    [gate] = found['gates'].values()
    assert result.returncode == (0 if gate['holds'] else 1), result.stderr
    assert ('does not hold' in ' '.join(result.stdout.split())) is not gate['holds']
    assert found['monitoring']['reports'] >= 20 and not found['monitoring']['reports_without']
    assert found['monitoring']['window_cpu_share'] > 0.0  # it drew


@pytest.mark.slow
def test_the_recorded_run_has_the_figures_of_its_json(tmp_path):
    pytest.importorskip('matplotlib', reason='needs matplotlib (extra `report`)')
    from test_report import read_page

    result = run('load', '--duration', 4, '--record', tmp_path / 'run')
    assert result.returncode == 0, result.stderr
    written = json.loads((tmp_path / 'run' / 'bench.json').read_text())
    with open_bag(tmp_path / 'run' / 'bag') as bag:
        assert {'/diagnostics', '/oxygen/latency'} <= {topic.name for topic in bag.topics}
        recorded = figures_of(read_recording(bag))
    tick = written['tick'][LOAD]['full']
    for name in ('sd_ms', 'p99_ms', 'worst_ms', 'held', 'on_time'):
        assert recorded[f'tick.recorded.{name}'] == pytest.approx(tick[name], rel=1e-9), name
    assert recorded['recording.targets'] == tick['ticks']
    both = read_bench(tmp_path / 'run' / 'bench.json')[0]
    same = {name for name in recorded if name.startswith(('preempt.', 'action.'))}
    assert {'preempt.wait_ms.p99', 'action.pass_ms.p50', 'action.chunks_per_s'} <= same
    assert {name: recorded[name] for name in same} == {name: both[name] for name in same}
    for source, expected in (('bag', recorded), ('bench.json', None)):
        page = tmp_path / f'{source}.html'
        assert main(['report', str(tmp_path / 'run' / source), '-o', str(page)]) == 0
        figures = read_page(page).figures
        assert figures == (expected or both)
    assert recorded['timeline.entries'] > 100
    assert recorded['scene.updates'] == written['dialogue'][LOAD]['scene_graphs']
