# SPDX-License-Identifier: Apache-2.0
"""`oxygen report`: the page stands alone and says what was measured."""

from html.parser import HTMLParser
import json
from pathlib import Path
import sys

sys.path.append(str(Path(__file__).resolve().parents[1] / 'replay'))
from made_bags import make_bag
from made_recording import (
    ISOLATED_BYTES,
    make_recording,
    Plan,
    SHARED_BYTES,
    START_NS,
    TICK_NS,
)
import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin

from oxygen_ros.cli import main
from oxygen_ros.figures.claims import LOADS, ROWS
from oxygen_ros.replay.bag import open_bag
from oxygen_ros.report.command import read_bench
from oxygen_ros.report.recorded_figures import figures_of
from oxygen_ros.report.recording import read_recording
from oxygen_ros.report.worst_second import lanes_around, worst_tick

pytest.importorskip('matplotlib', reason='needs matplotlib (extra `report`)')

LOADING = {'src', 'href', 'srcset', 'data', 'action', 'poster', 'background', 'xlink:href'}


class _Page(HTMLParser):
    """Collects what a page refers to and the figures in it."""

    def __init__(self, text):
        super().__init__()
        self.references, self.tags, self.figures, self.verdicts = [], set(), {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.add(tag)
        self.references += [value for name, value in attrs if name in LOADING]
        if 'data-value' in attributes:
            self.figures[attributes['data-name']] = float(attributes['data-value'])
        if tag == 'td' and attributes.get('class') in ('met', 'not_met', 'no_figure'):
            self.verdicts.append(attributes['class'])


def read_page(path):
    text = path.read_text()
    page = _Page(text)
    assert page.tags.isdisjoint({'script', 'link', 'iframe', 'object', 'embed', 'base'})
    assert all(reference.startswith('data:image/png;base64,') for reference in page.references)
    assert '@import' not in text and 'url(' not in text
    assert path.stat().st_size < 5_000_000
    return page


def bench():
    """Return what a benchmark writes, in small."""
    tick = {
        load: {
            row: {
                'sd_ms': 0.1 + number / 7.0,
                'p99_ms': 1.0 / 3.0,
                'worst_ms': 2.0,
                'on_time': 0.995,
                'held': 0,
                'age_ms': {'p50': 80.0, 'p99': 120.0},
            }
            for number, row in enumerate(ROWS)
        }
        for load in LOADS
    }
    return {
        'kv': {'bytes': {'isolated': 9_000_001, 'shared': 3_000_000, 'reduction': 2.0 / 3.0}},
        'cycle_ms': {row: {'p50': 50.0, 'p99': 61.7} for row in ROWS},
        'cycle': {'speedup': 2.3, 'predicted_speedup': 2.6},
        'tick': tick | {'bare': {'sd_ms': 0.19, 'p99_ms': 0.6}},
        'preempt': {'wait_ms': {'p50': 0.9, 'p99': 3.1}},
        'dialogue': {
            load: {'ttft_ms': {'p50': 100.0, 'p99': 300.0}, 'tokens_per_s': 210.0}
            for load in LOADS
        },
        'action': {
            'chunks_per_s': 49.7,
            'actions_per_s': 795.2,
            'over_floor': 1.7,
            'pass_ms': {'p50': 3.9, 'p99': 6.2},
        },
        'ingest': {'ms': {'p50': 1.2, 'p99': 4.4}, 'frames_in': 7200, 'frames_out': 7200},
        'env': {'cpu': '<a href="http://nowhere.invalid">cpu</a>', 'cores': 2},
    }


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp('recorded') / 'bag'
    return path, make_recording(path)


def test_a_benchmark_page_holds_every_number_of_the_json(tmp_path, capsys):
    source = tmp_path / 'bench.json'
    source.write_text(json.dumps(bench()))
    assert (
        main(
            [
                'report',
                str(source),
                '-o',
                str(tmp_path / 'page.html'),
                '--png',
                str(tmp_path / 'png'),
            ]
        )
        == 0
    )
    page = read_page(tmp_path / 'page.html')
    assert page.figures == read_bench(source)[0]
    exact = bench()['tick']['dialogue1']['full']['sd_ms']
    assert page.figures['tick.dialogue1.full.sd_ms'] == exact
    counts = [page.verdicts.count(verdict) for verdict in ('met', 'not_met', 'no_figure')]
    assert counts == [9, 1, 1]  # the jitter of `full` is above its limit; no scene graph
    plots = sorted(file.name for file in (tmp_path / 'png').iterdir())
    assert plots == [
        'cycles.png',
        'first_token.png',
        'kv.png',
        'on_time.png',
        'ticks.png',
        'waits.png',
    ]
    assert '6 plots' in capsys.readouterr().out


@pytest.mark.parametrize(
    'content',
    [{'a': 1}, {'kv': {'bytes': {'shared': 3}}}, {'tick': {'idle': {'full': {'p99_ms': 1.0}}}}],
)
def test_a_benchmark_with_little_in_it_makes_a_page(content, tmp_path):
    source = tmp_path / 'bench.json'
    source.write_text(json.dumps(content))
    assert main(['report', str(source), '-o', str(tmp_path / 'page.html')]) == 0
    assert read_page(tmp_path / 'page.html').figures == read_bench(source)[0]


def test_a_recording_gives_the_figures_that_were_recorded(recorded):
    path, lateness_ms = recorded
    plan = Plan()
    with open_bag(path) as bag:
        recording = read_recording(bag)
    figures = figures_of(recording)
    assert figures['tick.recorded.sd_ms'] == pytest.approx(np.std(lateness_ms))
    assert figures['tick.recorded.worst_ms'] == pytest.approx(30.0)
    assert figures['tick.recorded.held'] == len(plan.held_ticks)
    assert figures['tick.recorded.skipped'] == len(plan.skipped_ticks)
    due = len(lateness_ms) + len(plan.skipped_ticks)
    late = len(plan.held_ticks) + len(plan.skipped_ticks) + 1
    assert figures['tick.recorded.on_time'] == pytest.approx(1.0 - late / due)
    assert figures['action.chunks_per_s'] == pytest.approx(50.0)
    assert figures['action.actions_per_s'] == pytest.approx(400.0)
    assert figures['dialogue.recorded.ttft_ms.p50'] == 200.0  # 150 and 250, once each
    assert figures['kv.best_reduction'] == pytest.approx(1.0 - SHARED_BYTES / ISOLATED_BYTES)
    assert figures['camera.front.age_ms.p50'] == pytest.approx(42.0)
    assert figures['camera.wrist.age_ms.p50'] == pytest.approx(52.0)
    assert figures['scene.period_s.p50'] == pytest.approx(plan.scene_period_s)
    assert figures['preempt.wait_ms.p99'] == pytest.approx(plan.wait_ns * 1e-6)
    assert figures['slices.dialogue_ms.p50'] == pytest.approx(3.0)
    assert recording.ticks[worst_tick(recording)][0] == plan.late_tick
    assert recording.hold_reasons == {'chunk_exhausted': len(plan.held_ticks)}


def test_a_recording_page_stands_alone_and_its_trace_opens(recorded, tmp_path):
    path, lateness_ms = recorded
    page_path, trace_path = tmp_path / 'page.html', tmp_path / 'trace.json'
    assert main(['report', str(path), '-o', str(page_path), '--trace', str(trace_path)]) == 0
    page = read_page(page_path)
    with open_bag(path) as bag:
        assert page.figures == figures_of(read_recording(bag))
    assert len([reference for reference in page.references if reference]) == 7
    events = json.loads(trace_path.read_text())['traceEvents']
    targets = [event for event in events if event['name'] in ('target', 'held')]
    assert len(targets) == len(lateness_ms)
    assert max(event['dur'] for event in targets) == pytest.approx(30_000.0)
    waits = [event for event in events if event['name'] == 'action waits for a slice']
    assert len(waits) == 200 and waits[-1]['ts'] == pytest.approx(199 * 20_000.0)
    assert {event['ph'] for event in events} == {'M', 'X', 'C'}
    assert all(event['ts'] >= 0.0 for event in targets)


def test_the_worst_second_shows_what_the_engine_ran_around_the_late_tick(recorded):
    path, _ = recorded
    plan = Plan()
    with open_bag(path) as bag:
        recording = read_recording(bag)
    lanes = {
        name: spans
        for name, spans, _ in lanes_around(recording, START_NS + plan.late_tick * TICK_NS)
    }
    assert list(lanes) == ['action pass', 'action waits', 'prefix', 'dialogue', 'scene graph']
    assert len(lanes['prefix']) == len(lanes['scene graph']) == 0
    assert 50 <= len(lanes['action waits']) <= 52
    late = [0.0, plan.wait_ns * 1e-6]
    assert np.isclose(lanes['action waits'], late).all(axis=1).sum() == 1
    recording.slices.clear()  # of an older recording only the chunks are known
    [(name, spans, _)] = lanes_around(recording, START_NS + plan.late_tick * TICK_NS)
    assert name == 'action pass' and len(spans) > 40


def test_a_deterministic_replay_reports_its_slices(tmp_path, capsys):
    out, page = tmp_path / 'out', tmp_path / 'page.html'
    assert (
        main(
            [
                'replay',
                str(make_bag(tmp_path / 'bag')),
                '--deterministic',
                '--record',
                str(out),
                '--ask',
                '0.1:What?',
            ]
        )
        == 0
    )
    assert main(['report', str(out), '-o', str(page)]) == 0
    figures = read_page(page).figures
    assert figures['timeline.entries'] > 50 and figures['slices.prefix_ms.p50'] > 0.0
    with open_bag(out) as bag:
        recording = read_recording(bag)
    rows = recording.timeline()
    assert (
        recording.start_ns - 10**9
        < rows[:, 1].min()
        < rows[:, 2].max()
        < 10**9 + max(recording.tick_ns)
    )


def test_sqlite_is_read_and_a_damaged_file_is_reported_and_fails(tmp_path, capsys):
    bag = tmp_path / 'bag'
    make_recording(bag, Plan(seconds=1.0, plugin=StoragePlugin.SQLITE3))
    with open_bag(bag) as opened:
        assert len(read_recording(opened).tick_ns) == 50
    database = next(bag.glob('*.db3'))
    database.write_bytes(database.read_bytes()[:-20_000])
    assert main(['report', str(bag), '-o', str(tmp_path / 'page.html')]) == 1
    assert 'lost' in capsys.readouterr().out


def test_of_several_nodes_one_is_chosen_by_name(recorded, tmp_path, capsys):
    bag = tmp_path / 'bag'
    make_recording(bag, Plan(seconds=0.2, node='/left/oxygen'))
    with open_bag(bag) as opened:
        assert read_recording(opened, '/left/oxygen').node == '/left/oxygen'
    assert main(['report', str(bag), '--node', '/right', '-o', str(tmp_path / 'page.html')]) == 1
    assert 'expected figures of /right, got those of /left/oxygen' in capsys.readouterr().err


@pytest.mark.parametrize(
    'name, content, expected',
    [
        ('no.json', None, 'expected a recording or a JSON file, found nothing'),
        ('bad.json', '{', 'expected a JSON file of a benchmark'),
        ('list.json', '[1]', 'expected a JSON object, got list'),
        ('empty.json', '{}', 'expected figures, got no number'),
    ],
)
def test_what_is_no_source_is_refused_in_one_line(name, content, expected, tmp_path, capsys):
    if content is not None:
        (tmp_path / name).write_text(content)
    assert main(['report', str(tmp_path / name), '-o', str(tmp_path / 'page.html')]) == 1
    error = capsys.readouterr().err
    assert expected in error and error.count('\n') == 1


def test_a_trace_of_a_json_is_refused(tmp_path, capsys):
    source = tmp_path / 'bench.json'
    source.write_text('{"a": 1}')
    assert (
        main(
            [
                'report',
                str(source),
                '-o',
                str(tmp_path / 'page.html'),
                '--trace',
                str(tmp_path / 'trace.json'),
            ]
        )
        == 1
    )
    assert 'which holds no times' in capsys.readouterr().err
