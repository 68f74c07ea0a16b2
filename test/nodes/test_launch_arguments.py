# SPDX-License-Identifier: Apache-2.0
"""Launch arguments: what they become, and the one line that a wrong one ends in."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='the launch files belong to the ROS nodes')
from oxygen_ros.nodes import launch_arguments as arguments
from oxygen_ros.nodes.launch_arguments import LaunchArgumentError

ROOT = Path(__file__).resolve().parents[2]


def files(robot='', params_file=''):
    return arguments.parameter_files(ROOT, robot, params_file)


def test_files_come_in_the_order_defaults_robot_own(tmp_path):
    own = tmp_path / 'own.yaml'
    own.write_text('oxygen:\n  ros__parameters: {cameras: [top]}\n', encoding='utf-8')
    assert files('so101', str(own)) == [
        str(ROOT / 'config' / 'oxygen.yaml'),
        str(ROOT / 'config' / 'robots' / 'so101.yaml'),
        str(own.resolve()),
    ]
    assert files(str(own))[1:] == [str(own.resolve())]
    assert arguments.parameters_of(files('so101', str(own)))['cameras'] == ['top']
    assert arguments.parameters_of(files('so101'))['joints'][0] == 'shoulder_pan'


def test_cameras_are_names_with_or_without_a_topic():
    names, remappings = arguments.cameras('front=/d435/color/image_raw, wrist')
    assert names == ['front', 'wrist']
    assert remappings == [
        ('front/image_raw', '/d435/color/image_raw'),
        ('front/image_raw/compressed', '/d435/color/image_raw/compressed'),
    ]
    assert arguments.cameras('') == ([], [])


def test_cameras_that_are_left_out_are_not_optional_any_more():
    aloha = files('aloha')
    assert arguments.camera_overrides([], aloha) == {}
    assert arguments.camera_overrides(['cam_high', 'cam_low'], aloha) == {
        'cameras': ['cam_high', 'cam_low'],
        'optional_cameras': ['cam_low'],
    }
    assert arguments.camera_overrides(['cam_high'], aloha) == {
        'cameras': ['cam_high'],
        'optional_cameras': [''],
    }


def test_a_model_is_given_by_name_or_by_folder(tmp_path):
    assert arguments.model_overrides({'model': '', 'checkpoint': ''}) == {}
    assert arguments.model_overrides({'model': 'tiny', 'checkpoint': ''}) == {
        'model.name': 'tiny',
        'model.checkpoint': '',
    }
    assert arguments.model_overrides({'model': '', 'checkpoint': str(tmp_path)}) == {
        'model.checkpoint': str(tmp_path.resolve())
    }


def test_words_and_numbers_are_read():
    given = {'a': 'True', 'b': 'off', 'c': '2'}
    assert arguments.boolean(given, 'a') and not arguments.boolean(given, 'b')
    assert arguments.number(given, 'c', 0.0) == 2.0


@pytest.mark.parametrize(
    ('read', 'message'),
    [
        (
            lambda: files('marvin'),
            "robot: expected one of aloha, franka_fr3, so101, or a parameter file, got 'marvin'",
        ),
        (lambda: files('/none.yaml'), "got '/none.yaml'"),
        (lambda: files('', '/none.yaml'), "params_file: expected a file, got '/none.yaml'"),
        (
            lambda: arguments.cameras('a,a'),
            'cameras: expected different names or name=topic pairs',
        ),
        (lambda: arguments.cameras('a='), "got 'a='"),
        (lambda: arguments.boolean({'x': 'maybe'}, 'x'), "x: expected true or false, got 'maybe'"),
        (lambda: arguments.number({'x': 'nan'}, 'x', 1.0), 'x: expected a number of at least 1'),
        (lambda: arguments.choose({'x': 'c'}, 'x', 'a', 'b'), "x: expected a or b, got 'c'"),
        (
            lambda: arguments.model_overrides({'model': 'tiny', 'checkpoint': '/'}),
            'model: expected without checkpoint',
        ),
        (
            lambda: arguments.model_overrides({'model': '', 'checkpoint': '/none'}),
            "checkpoint: expected a folder, got '/none'",
        ),
    ],
)
def test_a_wrong_argument_ends_in_one_line(read, message):
    with pytest.raises(LaunchArgumentError) as caught:
        read()
    assert message in str(caught.value) and '\n' not in str(caught.value)


def test_a_file_that_holds_no_parameters_is_named(tmp_path):
    path = tmp_path / 'list.yaml'
    for text in ('- a\n', 'a: [\n', '/**: 3\n', ''):
        path.write_text(text, encoding='utf-8')
        with pytest.raises(LaunchArgumentError, match='list.yaml: expected a parameter file'):
            arguments.parameters_of([str(path)])
