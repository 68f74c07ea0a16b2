# SPDX-License-Identifier: Apache-2.0
"""Parameters that the nodes act on themselves, each seen to act.

Where all others arrive is held by test/robot/test_settings.py.
"""

from __future__ import annotations

import json
from pathlib import Path
import re

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from rig import overrides, Rig
from std_srvs.srv import SetBool, Trigger
import torch

from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.robot.settings import SETTINGS

NODES = Path(__file__).parent
# The others of them, and the tests that show them.
ELSEWHERE = {
    'autostart': 'test_oxygen_node_process.py::'
    'test_a_signal_while_decoding_ends_the_process_in_a_hold',
    'engine_node': 'test_tick_node.py::test_a_signal_ends_the_process_in_a_hold',
    'tick.process': 'test_tick_node.py::test_the_engines_figures_say_that_the_tick_is_elsewhere',
    'actuation.controller_manager': 'test_robot_link.py::'
    'test_a_controller_manager_that_cannot_be_asked_is_named_only_where_it_is_wanted',
    'dialogue.result_timeout_s': 'test_dialogues_at_length.py::'
    'test_a_dialogue_longer_than_results_are_kept_ends_as_any_other',
    'engine.stuck_after_s': 'test_oxygen_node_engine_faults.py::'
    'test_a_stuck_engine_ends_in_a_hold_and_goes_on_when_it_can',
}


@pytest.fixture
def rig():
    rig = Rig()
    rig.listen(DiagnosticArray, '/diagnostics', 10)
    yield rig
    rig.close()


@pytest.fixture
def start(rig):
    """Start an active node."""
    nodes = []

    def start_node(**parameters):
        node = OxygenNode(context=rig.context, parameter_overrides=overrides(**parameters))
        nodes.append(node)
        rig.executor.add_node(node)
        assert node.trigger_configure().name == 'SUCCESS'
        node.trigger_activate()
        return node

    yield start_node
    for node in nodes:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()


@pytest.mark.parametrize(
    ('transport', 'topics'),
    [
        ('raw', {'/camera_0/image_raw', '/camera_1/image_raw'}),
        ('compressed', {'/camera_0/image_raw/compressed', '/camera_1/image_raw/compressed'}),
    ],
)
def test_image_transport_chooses_the_topics_of_images(start, transport, topics):
    node = start(image_transport=transport)
    assert {sub.topic_name for sub in node.subscriptions if 'camera' in sub.topic_name} == topics


def test_rates_threads_and_the_record_are_as_the_parameters_say(start, tmp_path):
    record = tmp_path / 'run.json'
    threads = torch.get_num_threads()
    try:
        node = start(
            latency__rate_hz=4.0,
            diagnostics__rate_hz=2.0,
            memory__period_s=7.0,
            engine__num_threads=2,
            record_file=str(record),
        )
        assert torch.get_num_threads() == 2
        periods_ns = {timer.timer_period_ns for timer in node.timers}
        assert {250_000_000, 500_000_000, 7_000_000_000} <= periods_ns
        node.trigger_deactivate()
        assert 'timeline' in json.loads(record.read_text())
    finally:
        torch.set_num_threads(threads)


def test_limits_of_diagnostics_decide_what_is_warned_of(rig, start):
    node = start(
        diagnostics__rate_hz=10.0,
        diagnostics__max_jitter_p99_ms=0.001,
        diagnostics__max_held_ratio=1.0,
        diagnostics__min_camera_rate_hz=1000.0,
    )
    arrays = rig.received['/diagnostics']

    def messages():
        return ' '.join(status.message for array in arrays for status in array.status)

    def said(text):
        rig.wait_for(lambda: re.search(text, messages()) is not None, text)

    said(r'ticks are .* ms late')
    said(r'[\d.]+ images per second')
    assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
    assert rig.call(Trigger, 'oxygen/hold').success
    held = len(arrays)
    rig.wait_for(lambda: len(arrays) > held + 12, 'more than a second of holding')
    assert 'holds: ' not in messages()
    node.set_parameters([Parameter('diagnostics.max_held_ratio', value=0.5)])
    said('holds: ')


@pytest.mark.parametrize(('name', 'test'), ELSEWHERE.items())
def test_each_of_the_others_has_its_test(name, test):
    file, _, function = test.partition('::')
    text = (NODES / file).read_text(encoding='utf-8')
    given = text + (NODES / 'rig.py').read_text(encoding='utf-8')  # for all processes
    assert name in SETTINGS and f'def {function}(' in text
    assert name in given or name.replace('.', '__') in given
