# SPDX-License-Identifier: Apache-2.0
"""Clients of a node leave nothing behind in their process."""

import gc

from own_domain import DOMAIN
from participants import num_participants
import pytest
from rclpy.task import Future
from rosbags.highlevel import AnyReader

from oxygen_ros.msg import Target
from oxygen_ros.nodes.clients.node_driver import NodeDriver, run_driver
from oxygen_ros.replay.output_types import output_types
from oxygen_ros.replay.recorder import OutputRecorder


def test_each_run_ends_with_the_participants_that_it_began_with(monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(DOMAIN))
    gc.collect()  # those of the tests before
    before = num_participants()
    for _ in range(2):
        inside = run_driver(
            lambda: NodeDriver('driver', lambda: None), lambda driver: num_participants()
        )
        assert inside == before + 1
        assert num_participants() == before


class LossyClient:
    """A client of whose answers the middleware loses the first ones."""

    def __init__(self, num_lost):
        self.requests = []
        self._num_lost = num_lost

    def service_is_ready(self):
        return True

    def call_async(self, request):
        self.requests.append(request)
        future = Future()
        if len(self.requests) > self._num_lost:
            future.set_result(f'answer {len(self.requests)}')
        return future


@pytest.mark.parametrize('num_lost', [0, 1])
def test_a_request_whose_answer_gets_lost_is_sent_again(monkeypatch, num_lost):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(DOMAIN))
    client = LossyClient(num_lost)
    answer = run_driver(
        lambda: NodeDriver('driver', lambda: None),
        lambda driver: driver.call(client, 'request', 'a service'),
    )
    assert answer == f'answer {num_lost + 1}'
    assert client.requests == ['request'] * (num_lost + 1)


def test_what_comes_is_counted_and_taken_and_recorded_while_it_is_wanted(monkeypatch, tmp_path):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(DOMAIN))
    taken = []

    def run(driver):
        publisher = driver.create_publisher(Target, 'oxygen/target', 10)
        driver.listen('oxygen/target', Target, taken.append)
        driver.wait(publisher.get_subscription_count, 'discovery')
        for number, driver._recording_now in enumerate((False, True, True, False)):
            publisher.publish(Target(tick=number))
            driver.wait(lambda: len(taken) > number, 'a target')  # noqa: B023
        return driver.counts

    with OutputRecorder(tmp_path / 'bag') as recorder:
        counts = run_driver(lambda: NodeDriver('driver', lambda: None, recorder), run)
    assert counts == {'oxygen/target': 4} and [target.tick for target in taken] == [0, 1, 2, 3]
    with AnyReader([tmp_path / 'bag'], default_typestore=output_types()) as bag:
        recorded = [
            (connection.topic, bag.deserialize(data, connection.msgtype).tick)
            for connection, _, data in bag.messages()
        ]
    assert recorded == [('/oxygen/target', 1), ('/oxygen/target', 2)]
