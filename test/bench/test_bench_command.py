# SPDX-License-Identifier: Apache-2.0
"""`oxygen bench`: what it refuses, and that a run under load is recorded as it was."""

import json
import os
from pathlib import Path
import subprocess
import sys

import pytest

from oxygen_ros.bench.command import MOVED
from oxygen_ros.cli import main
from oxygen_ros.replay.bag import open_bag
from oxygen_ros.report.command import read_bench
from oxygen_ros.report.recorded_figures import figures_of
from oxygen_ros.report.recording import read_recording

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'test' / 'report'))
LOAD = 'dialogue4_scene_cameras'


@pytest.mark.parametrize(
    'arguments, because',
    [
        (['kv', '--duration', '3'], '--duration: expected load'),
        (['load', '--duration', '0'], '--duration: expected load, and a number above 0'),
        (['stages', '--record', 'x'], '--record: expected load, got stages'),
        (['--record', 'x'], '--record: expected load, got the suite'),
        (['load', '--quick'], '--quick: expected the suite, got load'),
        (['load', '--record', '.'], '--record: expected a new folder, got .: File exists'),
    ],
)
def test_options_of_other_measurements_are_refused_in_one_line(arguments, because, capsys):
    assert main(['bench', *arguments]) == 1
    err = capsys.readouterr().err
    assert because in err and err.count('\n') == 1


@pytest.mark.parametrize('name', MOVED)
def test_a_measurement_that_moved_to_the_checkout_is_named_with_its_command(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main(['bench', name])
    assert ended.value.code == 2
    assert f'{name} is measured in a checkout: .venv/bin/python -m benchmarks.{name}' in (
        capsys.readouterr().err
    )
    assert (ROOT / 'benchmarks' / f'{name}.py').is_file()


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
