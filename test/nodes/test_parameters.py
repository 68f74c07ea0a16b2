# SPDX-License-Identifier: Apache-2.0
"""The table of parameters: its files are fresh, and every wrong value ends in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='the parameters are those of a ROS node')
import rclpy
from rclpy.context import Context
from rclpy.node import Node
import yaml

from oxygen_ros.nodes.parameters.declare import declare_all, ParameterError, read_all
from oxygen_ros.nodes.parameters.files import COMMAND, document, params_file
from oxygen_ros.nodes.parameters.settings import make_settings
from oxygen_ros.nodes.parameters.spec import ParameterSpec
from oxygen_ros.nodes.parameters.table import PARAMETERS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def declare():
    """Declare the table on a node that got a command line; return its values."""
    context = Context()
    rclpy.init(context=context, domain_id=101)
    nodes = []

    def declare_with(*arguments):
        node = Node(
            f'parameters_{len(nodes)}',
            context=context,
            use_global_arguments=False,
            cli_args=['--ros-args', *arguments],
            start_parameter_services=False,
        )
        nodes.append(node)
        declare_all(node)
        return read_all(node)

    yield declare_with
    for node in nodes:
        node.destroy_node()
    context.try_shutdown()


def flat(group, prefix=''):
    """Return nested parameters by their dotted names."""
    values = {}
    for name, value in group.items():
        if isinstance(value, dict):
            values.update(flat(value, f'{prefix}{name}.'))
        else:
            values[f'{prefix}{name}'] = value
    return values


@pytest.mark.parametrize(
    ('path', 'make'), [('config/oxygen.yaml', params_file), ('doc/parameters.md', document)]
)
def test_the_written_files_are_fresh(path, make):
    assert (ROOT / path).read_text(encoding='utf-8') == make(), f'run {COMMAND}'


def test_the_parameter_file_holds_the_whole_table():
    data = yaml.safe_load((ROOT / 'config' / 'oxygen.yaml').read_text(encoding='utf-8'))
    values = flat(data['/**']['ros__parameters'])
    assert values == {spec.name: spec.default for spec in PARAMETERS}
    assert list(values) == [spec.name for spec in PARAMETERS]


def test_the_parameter_file_is_read_back_by_ros(declare):
    values = declare('--params-file', str(ROOT / 'config' / 'oxygen.yaml'))
    assert values == {spec.name: spec.default for spec in PARAMETERS}


def test_every_parameter_has_a_meaning_and_numbers_have_a_unit_or_a_range():
    for spec in PARAMETERS:
        assert len(spec.description) > 10, spec.name
        if isinstance(spec.default, float):
            assert spec.unit or spec.range_text, spec.name
        if spec.name.endswith(('_s', '_hz', '_ms')):
            assert spec.unit == {'s': 's', 'z': 'Hz'}.get(spec.name[-1]) or spec.unit == 'ms'


def test_the_table_is_checked_itself():
    with pytest.raises(ValueError, match='table of parameters: x: expected 1 to 2, got 3'):
        ParameterSpec('x', 3, 'A number', low=1, high=2)


def test_the_defaults_make_settings(declare):
    settings = make_settings(declare())
    assert settings.runtime.tick.period_ns == 20_000_000
    assert settings.runtime.tick.max_observation_age_ns == 400_000_000
    assert settings.runtime.sensors.optional_cameras == ()
    assert settings.runtime.realtime.cpus == ()
    assert settings.runtime.limits.max_velocity.tolist() == [2.0] * 7
    assert settings.runtime.engine.scheduler.micro_slice_s == 0.0035


@pytest.mark.parametrize(
    ('argument', 'message'),
    [
        ('model.name:=gpt', 'model.name: expected one of tiny'),
        ('modle.name:=tiny', 'modle.name: expected the name of a parameter'),
        ('cameras:=[]', 'cameras: expected a string[], got an empty list'),
        ('cameras:=[a, a]', "cameras: expected different names, got ['a', 'a']"),
        ("cameras:=['']", 'cameras: expected at least one name, got none'),
        ("cameras:=['a b']", 'cameras: expected names that can begin a topic'),
        ('cameras:=front', "cameras: expected a string[], got 'front'"),
        (
            'optional_cameras:=[rear]',
            "optional_cameras: expected names from cameras, got ['rear']",
        ),
        ('joints:=[a, a]', "joints: expected different names, got ['a', 'a']"),
        ('image_transport:=theora', 'image_transport: expected one of auto, raw, compressed'),
        (
            'max_observation_age_ms:=400',
            'max_observation_age_ms: expected a double, got 400 (write',
        ),
        ('max_observation_age_ms:=-1.0', 'max_observation_age_ms: expected 1 to 60000, got -1'),
        ('kv.block_size:=0', 'kv.block_size: expected 1 to 1024, got 0'),
        ('kv.block_size:=1.5', 'kv.block_size: expected a integer, got 1.5'),
        (
            'actuation.space:=[joint_effort]',
            'actuation.space: expected joint_position, joint_delta, '
            'joint_velocity, got joint_effort: an arm cannot be held by effort alone',
        ),
        (
            'actuation.space:=[end_effector_pose]',
            'got end_effector_pose: joints are what is limited',
        ),
        ('actuation.space:=[force]', 'joint_delta, joint_velocity, got force'),
        ('actuation.space:=[joint_delta, joint_delta]', 'actuation.space: expected 1 or 7 values'),
        (
            'actuation.decide_ahead_ms:=11.0',
            'actuation.decide_ahead_ms: expected at most half a period (10 ms), got 11.0',
        ),
        ('limits.max_velocity:=[1.0, 2.0]', 'limits.max_velocity: expected 1 or 7 values'),
        (
            'realtime.process_priority:=1',
            'realtime.process_priority: expected 0, or below fifo_priority (0), got 1',
        ),
        (
            'sensors.camera_max_age_s:=[1.0, 2.0]',
            'sensors.camera_max_age_s: expected 1 or 3 values',
        ),
        ('sensors.frozen_after_s:=-1.0', 'sensors.frozen_after_s: expected 0 to 3600'),
        ('limits.max_step:=[0.0]', 'limits.max_step: expected above 0'),
        ('realtime.switch_interval_s:=.nan', 'realtime.switch_interval_s: expected 1e-05 to 1'),
        ('model.device:=tpu', 'model.device: expected auto, cpu or cuda, got tpu'),
        ('memory.vocabulary_file:=/none.yaml', '/none.yaml: expected a readable YAML file'),
    ],
)
def test_a_wrong_value_is_refused_with_one_line(declare, argument, message):
    with pytest.raises(ParameterError) as caught:
        make_settings(declare('-p', argument))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
