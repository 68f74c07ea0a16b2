# SPDX-License-Identifier: Apache-2.0
"""What another thread has for the executor is heard of, even where a trigger gets lost."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip('rclpy', reason='the executor is that of ROS')
from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from oxygen_ros.nodes.middleware.wake_up import WakeUp

TIMEOUT_S = 60.0


@pytest.fixture
def spin():
    """Return a node and a function that spins it until a condition holds."""
    context = Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    node = Node('waking', context=context, start_parameter_services=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)

    def until(condition):
        deadline_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline_s
            executor.spin_once(timeout_sec=0.05)

    yield node, until
    executor.shutdown()
    node.destroy_node()
    context.try_shutdown()


def test_every_request_of_any_thread_is_followed_by_a_call(spin):
    node, until = spin
    given, taken = [], []
    wake = WakeUp(node, lambda: taken.append(len(given)))

    def give():
        for _ in range(500):
            given.append(1)
            wake()
            time.sleep(0.0005)

    threads = [threading.Thread(target=give) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: taken and taken[-1] == 2000)
    for thread in threads:
        thread.join()
    assert len(taken) <= 2000 and wake.num_lost == 0


def test_a_trigger_that_got_lost_delays_a_call_and_no_more(spin, monkeypatch):
    node, until = spin
    calls = []
    wake = WakeUp(node, lambda: calls.append(time.monotonic()))
    monkeypatch.setattr(wake._guard, 'trigger', lambda: None)
    wake()
    until(lambda: len(calls) == 1)
    monkeypatch.undo()
    assert wake.num_lost == 1
    wake()
    until(lambda: len(calls) == 2)


def test_a_trigger_that_got_lost_is_made_up_for_by_the_next_request(spin, monkeypatch):
    node, until = spin
    calls = []
    wake = WakeUp(node, lambda: calls.append(time.monotonic()))
    node.destroy_timer(wake._timer)  # so that it is none of its doing
    with monkeypatch.context() as lost:
        lost.setattr(wake._guard, 'trigger', lambda: None)
        wake()
    time.sleep(0.01)
    wake()
    until(lambda: len(calls) == 1)


def test_a_request_during_the_call_is_one_for_another_call(spin):
    node, until = spin
    calls = []

    def call():
        calls.append(1)
        if len(calls) < 5:
            wake()

    wake = WakeUp(node, call)
    wake()
    until(lambda: len(calls) == 5)
