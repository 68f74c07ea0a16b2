# SPDX-License-Identifier: Apache-2.0
"""Topics that cost the executor nothing between messages, and what stands at their other ends.

By default rclpy gives each topic two event handlers, and the executor looks at each of them at
each wake-up: three quarters of its work in a node of this size. A mismatch of QoS or type is found
by asking the graph once a second instead.

Upstream: no issue known. Seen with rclpy 9.1.2. `make_publisher` and `make_subscription` may go
when the executor of the processes waits for events (`rclpy.experimental.EventsExecutor`) or rclpy
makes no handler that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import qos_check_compatible, QoSCompatibility, QoSProfile
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo


def make_publisher(node: Node, kind: type, topic: str, qos: QoSProfile | int) -> Publisher[Any]:
    """Create a publisher without event handlers."""
    return node.create_publisher(
        kind, topic, qos, event_callbacks=PublisherEventCallbacks(use_default_callbacks=False)
    )


def make_subscription(
    node: Node,
    kind: type,
    topic: str,
    callback: Callable[..., None],
    qos: QoSProfile,
    group: CallbackGroup,
) -> Subscription[Any]:
    """Create a subscription without event handlers."""
    return node.create_subscription(
        kind,
        topic,
        callback,
        qos,
        callback_group=group,
        event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
    )


def _name(info: TopicEndpointInfo) -> str:
    return f'{info.node_namespace.rstrip("/")}/{info.node_name}'


def type_name(kind: type) -> str:
    """Return the name of a message class, as the graph has it."""
    package, folder, *_ = kind.__module__.split('.')
    return f'{package}/{folder}/{kind.__name__}'


def publisher_problems(node: Node, subscription: Subscription[Any]) -> list[str]:
    """Return why publishers on a subscription's topic cannot be heard; empty: all can."""
    expected = type_name(subscription.msg_type)
    problems = []
    for info in node.get_publishers_info_by_topic(subscription.topic_name):
        if info.topic_type != expected:
            problems.append(
                f'{subscription.topic_name}: expected {expected}, got '
                f'{info.topic_type} from {_name(info)}'
            )
            continue
        compatible, reason = qos_check_compatible(info.qos_profile, subscription.qos_profile)
        if compatible == QoSCompatibility.ERROR:
            problems.append(
                f'{subscription.topic_name}: QoS of {_name(info)} does not match: '
                f'{reason.strip().rstrip(";")}'
            )
    return problems


def num_publishers(node: Node, subscriptions: Iterable[Subscription[Any]]) -> int:
    """Return how many publishers there are on the topics of subscriptions."""
    return sum(node.count_publishers(subscription.topic_name) for subscription in subscriptions)


def command_problems(node: Node, publisher: Publisher[Any]) -> tuple[list[str], list[str]]:
    """Return who else publishes on a command topic of ours, and what is wrong with who listens."""
    topic = publisher.topic_name
    infos = node.get_publishers_info_by_topic(topic)
    own = f'{node.get_namespace().rstrip("/")}/{node.get_name()}'
    others = [_name(info) for info in infos if _name(info) != own]
    if len(infos) - len(others) > 1:
        others.append(f'a second {own}')
    rivals = [f'{topic}: {other} publishes too' for other in others]
    listeners = node.get_subscriptions_info_by_topic(topic)
    if not listeners:
        return rivals, [f'{topic}: nobody listens']
    unfit = [
        f'{topic}: QoS of {_name(info)} does not match'
        for info in listeners
        if qos_check_compatible(publisher.qos_profile, info.qos_profile)[0]
        == QoSCompatibility.ERROR
    ]
    return rivals, unfit
