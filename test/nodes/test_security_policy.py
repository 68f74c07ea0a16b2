"""The SROS 2 policy allows what the node needs, by its own list of entities, and no more."""
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from rig import overrides, Rig

from oxygen_ros.nodes.oxygen_node import OxygenNode

POLICY = Path(__file__).resolve().parents[2] / 'config' / 'sros2_policy.xml'
CAMERAS = ['front', 'left_wrist', 'right_wrist']


def allowed(kind, permission):
    """Return the full names that the node's profile allows."""
    profile = next(profile for profile in ElementTree.parse(POLICY).iter('profile')
                   if profile.get('node') == 'oxygen')
    return {_full(entry.text) for group in profile.findall(f'{kind}s')
            if group.get(permission) == 'ALLOW' for entry in group.findall(kind)}


def _full(name):
    return f'/oxygen{name[1:]}' if name.startswith('~') else f'/{name.lstrip("/")}'


def test_the_policy_names_every_topic_service_and_action_of_the_node():
    rig = Rig()
    node = OxygenNode(context=rig.context, parameter_overrides=overrides(cameras=CAMERAS))
    try:
        node.trigger_configure()
        published = {publisher.topic_name for publisher in node.publishers}
        heard = {subscription.topic_name for subscription in node.subscriptions}
        served = {service.service_name for service in node.services}
        # Entities of the lifecycle and of type descriptions belong to rcl.
        own = dict(node.get_publisher_names_and_types_by_node('oxygen', '/'))
        asked = dict(node.get_service_names_and_types_by_node('oxygen', '/'))
        published |= {name for name in own if '/_action/' not in name}
        served |= {name for name in asked if '/_action/' not in name}
    finally:
        node.trigger_shutdown()
        node.destroy_node()
        rig.close()
    assert allowed('topic', 'publish') == published
    assert allowed('topic', 'subscribe') == heard
    assert allowed('service', 'reply') == served
    assert allowed('action', 'execute') == {'/oxygen/dialogue'}


def test_only_the_operator_may_make_the_robot_move_or_change_the_node():
    moving = {'/oxygen/enable', '/oxygen/change_state', '/oxygen/set_parameters',
              '/oxygen/set_parameters_atomically', '/oxygen/takeover'}
    for enclave in ElementTree.parse(POLICY).iter('enclave'):
        asked = {entry.text for group in enclave.iter('services') if group.get('request')
                 for entry in group}
        assert not asked & moving or enclave.get('path') == '/operator'
