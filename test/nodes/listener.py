# SPDX-License-Identifier: Apache-2.0
"""A subscriber in the test's own process and sources in others, on a private domain."""

from collections import defaultdict
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, qos_profile_sensor_data, QoSProfile

from oxygen_ros.nodes.middleware.repeated_request import RepeatedRequest
from oxygen_ros.nodes.middleware.transport import use_large_data_transport

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120.0  # of a fresh process on a busy machine
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def stamp_ns(message):
    return message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec


class Listener:
    """Collects what arrives on some topics: (time of arrival in ns, message), by topic."""

    def __init__(self, topics):
        use_large_data_transport()
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
        self.received = defaultdict(list)
        self._context = Context()
        rclpy.init(context=self._context, domain_id=DOMAIN)
        self._node = Node('listener', context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        for topic, kind in topics.items():
            latched = topic.endswith('instruction')
            self._node.create_subscription(
                kind,
                topic,
                lambda message, topic=topic: self.received[topic].append(
                    (self._node.get_clock().now().nanoseconds, message)
                ),
                LATCHED if latched else qos_profile_sensor_data,
            )

    def wait_for(self, condition):
        """Spin until the condition holds; fail after the time limit."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not condition(self.received):
            assert time.monotonic() < deadline_s, {
                topic: len(messages) for topic, messages in self.received.items()
            }
            self._executor.spin_once(timeout_sec=0.1)

    def spin_for(self, seconds):
        """Take what comes for a while, all of it even if the machine stood still."""
        end_s, num_left = time.monotonic() + seconds, round(seconds * 100)
        while time.monotonic() < end_s or num_left > 0:
            self._executor.spin_once(timeout_sec=0.02)
            num_left -= 1

    def client(self, kind, service):
        """Return a function that calls a service and returns its response.

        It is asked again each 3 s: the middleware can lose an answer right after discovery.
        """
        client = self._node.create_client(kind, service)

        def call(request):
            self.wait_for(lambda received: client.service_is_ready())
            asked = RepeatedRequest(client, request, 3.0)
            self.wait_for(lambda received: asked.newest() is not None)
            return asked.answer

        return call

    def close(self):
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()


class Source:
    """A source in a process of its own; its output is kept."""

    def __init__(self, module, parameters):
        arguments = [
            part for name, value in parameters.items() for part in ('-p', f'{name}:={value}')
        ]
        environment = dict(
            os.environ,
            ROS_DOMAIN_ID=str(DOMAIN),
            PYTHONUNBUFFERED='1',
            ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST',
        )
        self.process = subprocess.Popen(
            [sys.executable, '-m', f'oxygen_ros.nodes.sources.{module}', '--ros-args', *arguments],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def end(self, *signals):
        """Send signals, wait for the end; return status, output and seconds."""
        begin_s = time.monotonic()
        for number in signals:
            self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, output, time.monotonic() - begin_s

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
