# SPDX-License-Identifier: Apache-2.0
"""Settings as ROS parameters: declared, shown, and every wrong value ends in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='the parameters are those of a ROS node')
import rclpy
from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter

from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.nodes.parameters import declare_all, read_all
from oxygen_ros.robot.settings import make_settings, SETTINGS
from oxygen_ros.setting import SettingError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def nodes():
    """Return the nodes of a test, which are destroyed after it."""
    made = []
    yield made
    for node in made:
        node.destroy_node()


@pytest.fixture
def declare(nodes):
    """Declare the parameters on a node that got a command line; return their values."""
    context = Context()
    rclpy.init(context=context, domain_id=101)

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
    nodes.clear()
    context.try_shutdown()


def test_the_parameter_file_is_read_back_by_ros(declare):
    values = declare('--params-file', str(ROOT / 'config' / 'oxygen.yaml'))
    assert values == {name: entry.default for name, entry in SETTINGS.items()}


def test_a_whole_number_is_taken_for_a_real_one_at_the_start(declare):
    values = declare('-p', 'max_observation_age_ms:=300', '-p', 'limits.max_step:=[1]')
    assert values['max_observation_age_ms'] == 300.0
    assert values['limits.max_step'] == [1.0]
    assert type(values['max_observation_age_ms']) is type(values['limits.max_step'][0]) is float


def test_what_the_tools_show_is_what_is_declared(declare, nodes):
    declare()
    described = nodes[0].describe_parameters(list(SETTINGS))
    for entry, found in zip(SETTINGS.values(), described):
        assert found.name == entry.name and entry.text in found.description
        assert found.read_only == entry.fixed and entry.unit in found.description
        assert ('unconfigured' in found.additional_constraints) == (
            not entry.live and not entry.fixed
        )
    ranges = {found.name: found for found in described}
    assert ranges['kv.block_size'].integer_range[0].to_value == 1024
    assert ranges['actuation.rate_hz'].floating_point_range[0].to_value == 1000.0


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
        ('max_observation_age_ms:=fast', "max_observation_age_ms: expected a double, got 'fast'"),
        ('kv.sharing:=isolated', 'kv.sharing: expected its new name baseline.kv_sharing'),
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
            'realtime.process_priority: expected 0, or below realtime.fifo_priority (0), got 1',
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
    with pytest.raises(SettingError) as caught:
        make_settings(declare('-p', argument))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_baseline_of_the_benchmark_is_warned_of_by_name(nodes, monkeypatch):
    context = Context()
    rclpy.init(context=context, domain_id=101)
    lines = []
    try:
        node = OxygenNode(
            context=context,
            parameter_overrides=[
                Parameter('baseline.kv_sharing', value='isolated'),
                Parameter('baseline.batching', value='cross_frame'),  # its default
            ],
        )
        nodes.append(node)
        logger = node.get_logger()
        monkeypatch.setattr(node, 'get_logger', lambda: logger)
        monkeypatch.setattr(logger, 'warning', lines.append)
        assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
        assert lines == [
            'baseline.kv_sharing: isolated: a baseline of the benchmark, not for a robot'
        ]
        node.trigger_cleanup()
        node.destroy_node()
        nodes.clear()
    finally:
        context.try_shutdown()
