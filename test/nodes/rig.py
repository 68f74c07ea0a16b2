# SPDX-License-Identifier: Apache-2.0
"""A robot, a client and their executor in the test's process, on a domain of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
import math
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from typing import Any

from action_msgs.msg import GoalInfo
from action_msgs.srv import CancelGoal
import numpy as np
from numpy.typing import NDArray
from own_domain import DOMAIN
import psutil
import rclpy
from rclpy.action import ActionClient
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from robot_source import RobotSource
from unique_identifier_msgs.msg import UUID

from oxygen_ros.action import Dialogue
from oxygen_ros.nodes.middleware.repeated_request import RepeatedRequest
from oxygen_ros.nodes.middleware.transport import use_large_data_transport

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120.0  # a fresh process and its discovery take seconds, on a busy machine many
PERIOD_NS = 20_000_000  # of the tick
CAMERAS = ('camera_0', 'camera_1')
JOINTS = ('shoulder', 'elbow', 'gripper')
_REPEAT_S = 3.0
_CANCEL = 'oxygen/dialogue/_action/cancel_goal'


class Conversation:
    """One dialogue goal as its client sees it."""

    def __init__(self) -> None:
        self.feedback: list[Any] = []
        self.handle: Any = None
        self.result: Any = None
        self.status: int | None = None
        self.num_results = 0


class Rig:
    """Publishes as a robot and listens as a client; `wait_for` spins both."""

    def __init__(self, cameras: Sequence[str] = CAMERAS, joints: Sequence[str] = JOINTS) -> None:
        use_large_data_transport()
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
        self.received: dict[str, list[Any]] = defaultdict(list)
        self.context = Context()
        rclpy.init(context=self.context, domain_id=DOMAIN)
        self.robot = RobotSource(cameras, joints, context=self.context)
        self.client = Node('client', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.robot)
        self.executor.add_node(self.client)
        self._clients: dict[str, Any] = {}
        self._met: set[str] = set()
        self._foreign: list[tuple[Node, Context]] = []
        self._dialogue = ActionClient(self.client, Dialogue, 'oxygen/dialogue')

    def listen(self, kind: type, topic: str, qos: QoSProfile | int = 1000) -> None:
        """Keep what arrives on a topic."""
        self.client.create_subscription(
            kind, topic, lambda message: self.received[topic].append(message), qos
        )

    def foreign(self, kind: type, topic: str, qos: QoSProfile | int) -> Any:
        """Create a publisher as another process would: with a middleware of its own."""
        context = Context()
        rclpy.init(context=context, domain_id=DOMAIN)
        node = Node('foreigner', context=context)
        self._foreign.append((node, context))
        return node.create_publisher(kind, topic, qos)

    def wait_for(
        self, condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Spin until the condition holds."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            counts = {topic: len(messages) for topic, messages in self.received.items()}
            assert time.monotonic() < deadline_s, f'waited {timeout_s} s for {what}; got {counts}'
            self.executor.spin_once(timeout_sec=0.05)

    def spin_for(self, duration_s: float) -> None:
        """Spin for a time, and often enough if the machine stood still during it."""
        end_s, num_left = time.monotonic() + duration_s, round(duration_s * 100)
        while time.monotonic() < end_s or num_left > 0:
            self.executor.spin_once(timeout_sec=0.02)
            num_left -= 1

    def call(self, kind: type, service: str, request: Any = None) -> Any:
        """Call a service and return its response.

        The first request to another process is repeated until there is one: its server may get it
        before it knows of the client, and its middleware then drops the answer. No later one is.
        """
        client = self._clients.get(service)
        if client is None:
            client = self._clients[service] = self.client.create_client(kind, service)
        self.wait_for(client.service_is_ready, service)
        may_repeat = service not in self._met and not self._is_here
        asked = RepeatedRequest(
            client,
            kind.Request() if request is None else request,
            _REPEAT_S if may_repeat else math.inf,
        )
        self.wait_for(lambda: asked.newest() is not None, f'an answer of {service}')
        self._met.add(service)
        return asked.answer

    @property
    def _is_here(self) -> bool:
        """Whether the node runs in this process: one beside robot and client."""
        return len(self.executor.get_nodes()) > 2

    def ask(
        self, prompt: str = 'What do you see?', max_tokens: int = 32, temperature: float = 0.0
    ) -> Conversation:
        """Send a goal and wait until it is accepted."""
        talk = Conversation()
        self.wait_for(self._dialogue.server_is_ready, 'the dialogue action')
        # A goal that is not there is cancelled. Who answers knows all of this client, whose parts
        # are announced in the order in which they were made.
        if not self._is_here and _CANCEL not in self._met:
            nobody = GoalInfo(goal_id=UUID(uuid=[7] * 16))
            self.call(CancelGoal, _CANCEL, CancelGoal.Request(goal_info=nobody))
        goal = Dialogue.Goal(prompt=prompt, max_tokens=max_tokens, temperature=temperature)
        sent = self._dialogue.send_goal_async(
            goal, feedback_callback=lambda message: talk.feedback.append(message.feedback)
        )
        self.wait_for(sent.done, 'the acceptance of a goal')
        talk.handle = sent.result()
        assert talk.handle.accepted

        def on_result(future: Any) -> None:
            talk.result, talk.status = future.result().result, future.result().status
            talk.num_results += 1

        talk.handle.get_result_async().add_done_callback(on_result)
        return talk

    def wait_for_result(self, talk: Conversation) -> Any:
        """Spin until a goal has ended; return its result."""
        self.wait_for(lambda: talk.result is not None, 'the result of a goal')
        return talk.result

    def close(self) -> None:
        """End everything."""
        self.executor.shutdown()
        for node, context in self._foreign:
            node.destroy_node()
            context.try_shutdown()
        self._dialogue.destroy()
        self.client.destroy_node()
        self.robot.destroy_node()
        self.context.try_shutdown()


def stamp_ns(message: Any) -> int:
    """Return the header's stamp."""
    return int(message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec)


def deadlines_ns(targets: Sequence[Any]) -> NDArray[np.int64]:
    """Return when targets of one activation were due (ROS time), by their numbers.

    A stamp alone may be off: the node can be interrupted between reading the one clock and the
    other.
    """
    numbers_ns = np.array([target.tick for target in targets]) * PERIOD_NS
    stamps_ns = np.array([stamp_ns(target) for target in targets])
    begins_ns = stamps_ns - numbers_ns
    return numbers_ns + begins_ns[0] + round(float(np.median(begins_ns - begins_ns[0])))


def overrides(**parameters: Any) -> list[Parameter[Any]]:
    """Return parameters for a node in this process; two underscores stand for a dot.

    What is seen may be old, for most tests are not about how fast the machine is.
    """
    values = {
        'cameras': list(CAMERAS),
        'joints': list(JOINTS),
        'memory__period_s': 0.0,
        'max_observation_age_ms': 2000.0,
        'sensors__state_max_age_s': 2.0,
        **parameters,
    }
    return [Parameter(name.replace('__', '.'), value=value) for name, value in values.items()]


class NodeProcess:
    """The node, or another program of ours, in a process of its own.

    :param program: what Python is to run.
    :param parameters: None: not to be given.
    """

    def __init__(self, *program: str, **parameters: str | None) -> None:
        values = {
            'cameras': f'[{",".join(CAMERAS)}]',
            'joints': f'[{",".join(JOINTS)}]',
            'autostart': 'true',
            **parameters,
        }
        arguments = [
            part
            for name, value in values.items()
            if value is not None
            for part in ('-p', f'{name.replace("__", ".")}:={value}')
        ]
        environment = dict(
            os.environ,
            ROS_DOMAIN_ID=str(DOMAIN),
            PYTHONUNBUFFERED='1',
            ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST',
        )
        self._process = subprocess.Popen(
            [
                sys.executable,
                *(program or ('-m', 'oxygen_ros.nodes.oxygen_node')),
                '--ros-args',
                *arguments,
            ],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._output: str | None = None

    def process(self) -> psutil.Process:
        """Return it as the system sees it."""
        return psutil.Process(self._process.pid)

    def signal(self, *numbers: int) -> None:
        """Send signals."""
        for number in numbers:
            self._process.send_signal(number)

    def wait(self, timeout_s: float = TIMEOUT_S) -> tuple[int, str]:
        """Wait for the end; return status and output."""
        if self._output is None:
            self._output, _ = self._process.communicate(timeout=timeout_s)
        return self._process.returncode, self._output

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def close(self) -> str:
        """End it if it runs; return and show its output. Once more changes nothing."""
        was_open = self._output is None
        if self.is_running:
            self.signal(signal.SIGKILL)
        output = self.wait()[1]
        if was_open:
            print(f'{" ".join(self._process.args[1:4])} printed:\n{output}')
        return output
