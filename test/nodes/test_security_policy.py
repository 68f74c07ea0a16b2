# SPDX-License-Identifier: Apache-2.0
"""The SROS 2 policy allows what the node needs, by its own list of entities, and no more."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from rig import overrides, Rig

from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.nodes.tick_node import TickNode

POLICY = Path(__file__).resolve().parents[2] / 'config' / 'sros2_policy.xml'
CAMERAS = ['front', 'left_wrist', 'right_wrist']


def allowed(node, kind, permission):
    """Return the full names that a node's profile allows."""
    profile = next(
        profile
        for profile in ElementTree.parse(POLICY).iter('profile')
        if profile.get('node') == node
    )
    return {
        _full(node, entry.text)
        for group in profile.findall(f'{kind}s')
        if group.get(permission) == 'ALLOW'
        for entry in group.findall(kind)
    }


def _full(node, name):
    return f'/{node}{name[1:]}' if name.startswith('~') else f'/{name.lstrip("/")}'


def entities_of(kind, **parameters):
    """Return what a configured node publishes, hears and serves, but for actions."""
    rig = Rig()
    node = kind(context=rig.context, parameter_overrides=overrides(cameras=CAMERAS, **parameters))
    try:
        node.trigger_configure()
        published = {publisher.topic_name for publisher in node.publishers}
        heard = {subscription.topic_name for subscription in node.subscriptions}
        served = {service.service_name for service in node.services}
        # Entities of the lifecycle and of type descriptions belong to rcl.
        own = dict(node.get_publisher_names_and_types_by_node(node.get_name(), '/'))
        asked = dict(node.get_service_names_and_types_by_node(node.get_name(), '/'))
        published |= {name for name in own if '/_action/' not in name}
        served |= {name for name in asked if '/_action/' not in name}
    finally:
        node.trigger_shutdown()
        node.destroy_node()
        rig.close()
    return published, heard, served


def test_the_policy_names_every_topic_service_and_action_of_the_node():
    alone = entities_of(OxygenNode)
    beside_a_tick = entities_of(OxygenNode, tick__process='separate')
    published, heard, served = (a | b for a, b in zip(alone, beside_a_tick))
    assert allowed('oxygen', 'topic', 'publish') == published
    assert allowed('oxygen', 'topic', 'subscribe') == heard
    assert allowed('oxygen', 'service', 'reply') == served
    assert allowed('oxygen', 'action', 'execute') == {'/oxygen/dialogue'}


def test_the_policy_names_every_topic_and_service_of_a_separate_tick():
    published, heard, served = entities_of(TickNode)
    assert allowed('oxygen_tick', 'topic', 'publish') == published
    assert allowed('oxygen_tick', 'topic', 'subscribe') == heard
    assert allowed('oxygen_tick', 'service', 'reply') == served


def test_only_the_operator_may_make_the_robot_move_or_change_the_node():
    moving = {
        '/oxygen/enable',
        '/oxygen/change_state',
        '/oxygen/set_parameters',
        '/oxygen/set_parameters_atomically',
        '/oxygen/takeover',
        '/oxygen_tick/change_state',
        '/oxygen_tick/set_parameters',
        '/oxygen_tick/set_parameters_atomically',
    }
    for enclave in ElementTree.parse(POLICY).iter('enclave'):
        asked = {
            entry.text
            for group in enclave.iter('services')
            if group.get('request')
            for entry in group
        }
        assert not asked & moving or enclave.get('path') == '/operator'
