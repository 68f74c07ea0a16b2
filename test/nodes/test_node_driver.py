# SPDX-License-Identifier: Apache-2.0
"""Clients of a node leave nothing behind in their process."""

import gc

from own_domain import DOMAIN
from participants import num_participants
import pytest
from rclpy.task import Future

from oxygen_ros.nodes.clients.node_driver import NodeDriver, run_driver


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
