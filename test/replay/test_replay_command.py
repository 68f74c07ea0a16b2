# SPDX-License-Identifier: Apache-2.0
"""`oxygen replay`: what it says and how it ends."""

import os
import subprocess
import sys

from made_bags import make_bag, START_NS
import pytest
from rosbags.highlevel import AnyReader
from test_recorded_bags import OUTCOMES, Refused

from oxygen_ros.cli import main

SHORT = ['--deterministic', '--duration', '0.06', '--scene-period', '0']
BAGS = [name for name in OUTCOMES if name.startswith(('native/', 'odd/'))]


@pytest.mark.parametrize('name', BAGS)
def test_every_recording_ends_as_documented(shared, capsys, name):
    expected = OUTCOMES[name]
    status = main(['replay', str(shared / 'data' / 'bags' / name), *SHORT])
    out, err = capsys.readouterr()
    if isinstance(expected, Refused):
        assert status == 1 and expected.because in err
    elif not expected.messages:
        assert status == 1 and 'expected a recording with messages, got one without any' in err
    elif not expected.images:
        assert status == 1 and 'expected a recording with images' in err
    elif expected.lost:
        assert status == 1
        assert f'{expected.messages} messages recovered, {expected.lost} lost' in err
    else:
        assert status == 0 and not err
        assert f'{expected.messages} messages' in out
        assert not expected.refused_images or 'refused' in out
        assert '3 target' in out


def test_record_compare_and_summary(tmp_path, capsys):
    bag, out, golden = make_bag(tmp_path / 'bag'), tmp_path / 'out', tmp_path / 'golden.json'
    assert main(['replay', str(bag), *SHORT, '--record', str(out), '--json', str(golden)]) == 0
    for other in (out, golden):
        assert main(['replay', str(bag), *SHORT, '--compare', str(other)]) == 0
    assert f'equals {golden}' in capsys.readouterr().out
    status = main(['replay', str(bag), *SHORT, '--compare', str(golden), '--seed', '3'])
    assert status == 1
    assert f'differs from {golden}: observation 1, /oxygen/action_chunk' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('arguments', 'because'),
    [
        (['--deterministic', '--rate', '2'], '--rate: expected without --deterministic'),
        (['--deterministic', '--loop'], '--loop: expected without --deterministic'),
        (['--deterministic', '--clock'], '--clock: expected without --deterministic'),
        (['--rate', '101'], '--rate: expected 0.01 to 100, got 101'),
        (['--clock', '0'], '--clock: expected 1 to 1000, got 0'),
        (['--start', '9'], 'expected more than 9 s'),
        (['--compare', 'x.json'], '--compare: expected together with --deterministic'),
        (['--json', 'x.json'], '--json: expected together with --deterministic'),
        (['--deterministic', '--compare', 'absent.json'], 'expected a golden that can be read'),
        (['--deterministic', '--ask', 'soon:what'], '--ask: expected TIME:TEXT'),
        (['--deterministic', '--remap', '/a'], '--remap: expected A:=B'),
        (['--deterministic', '--remap', '/left/image_raw:=/chatter'], 'keeps topics apart'),
        (['--remap', '/top:=/left'], 'expected a topic /top to take for another, got /chatter'),
        (
            ['--deterministic', '--set', 'model.seeds=1'],
            'model.seeds: expected the name of a param',
        ),
        (['--deterministic', '--set', 'model.seed=one'], 'model.seed: expected a integer'),
        (['--deterministic', '--set', 'kv.block_size=0'], 'kv.block_size: expected'),
        (['--deterministic', '--start', '9'], 'expected more than 9 s'),
        (['--deterministic', '--ask', '5:What?'], 'question: expected a time up to 0.353 s'),
        (['--deterministic', '--duration', '0'], '--duration: expected above 0'),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(tmp_path, capsys, arguments, because):
    assert main(['replay', str(make_bag(tmp_path / 'bag')), *arguments]) == 1
    err = capsys.readouterr().err
    assert because in err and err.count('\n') == 1


@pytest.mark.slow
@pytest.mark.parametrize('more', [[], ['--clock', '--rate', '0.5', '--start', '0.1']])
def test_in_real_time_through_dds(tmp_path, more):
    out = tmp_path / 'out'
    result = subprocess.run(
        [
            sys.executable,
            '-m',
            'oxygen_ros.cli',
            'replay',
            str(make_bag(tmp_path / 'bag')),
            '--loop',
            '--duration',
            '3',
            '--ask',
            '0.5:What?',
            '--record',
            str(out),
            *more,
        ],
        env={**os.environ, 'ROS_DOMAIN_ID': str(1 + os.getpid() % 100)},
        timeout=150,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    with AnyReader([out]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
        messages = [
            (connection.topic, reader.deserialize(data, connection.msgtype))
            for connection, _, data in reader.messages()
        ]
    targets = [message for topic, message in messages if topic == '/oxygen/target']
    assert len(targets) > 50 and counts['/oxygen/action_chunk'] > 10
    recorded_s = START_NS // 10**9
    assert (abs(targets[-1].header.stamp.sec - recorded_s) < 60) is ('--clock' in more)
    if '--clock' in more:  # 3 s of the recording last 6 s
        last_s = targets[-1].header.stamp.sec + targets[-1].header.stamp.nanosec * 1e-9
        assert 1.0 < last_s - START_NS * 1e-9 < 4.0
