# SPDX-License-Identifier: Apache-2.0
"""Driving our node from another process: lifecycle, services, dialogue, a bag of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
import gc
import sys
import time
from typing import Any, TypeVar

from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
import rclpy
from rclpy.action.client import ActionClient
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data, QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_srvs.srv import SetBool

from oxygen_ros.action import Dialogue
from oxygen_ros.srv import GetMemoryReport

from ...errors import OxygenError
from ...replay.output_types import exact_bytes
from ...replay.recorder import OutputRecorder
from ..middleware.endpoints import type_name
from ..middleware.repeated_request import RepeatedRequest

START_TIMEOUT_S = 90.0
_ASK_PERIOD_S = 2.0
_GOALS = {
    Transition.TRANSITION_CONFIGURE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_ACTIVATE: State.PRIMARY_STATE_ACTIVE,
    Transition.TRANSITION_DEACTIVATE: State.PRIMARY_STATE_INACTIVE,
}
Result = TypeVar('Result')
Driver = TypeVar('Driver', bound='NodeDriver')


class NodeDriver(Node):
    """A client of the node named `oxygen`; one thread, which spins while it waits.

    :param check: raises when something that is needed has ended, such as a child process.
    :param recorder: of what is listened to; None: no bag.
    """

    def __init__(
        self, name: str, check: Callable[[], None], recorder: OutputRecorder | None = None
    ) -> None:
        super().__init__(name)
        self.counts: Counter[str] = Counter()  # messages that came, by topic
        self._recording_now = False
        self._recorder = recorder
        self._check = check
        self._change_state: Any = self.create_client(ChangeState, 'oxygen/change_state')
        self._get_state: Any = self.create_client(GetState, 'oxygen/get_state')
        self._enable: Any = self.create_client(SetBool, 'oxygen/enable')
        self._get_memory_report: Any = self.create_client(
            GetMemoryReport, 'oxygen/get_memory_report'
        )
        self._dialogue: Any = ActionClient(self, Dialogue, 'oxygen/dialogue')

    def bring_up(self, cameras: tuple[str, ...]) -> None:
        """Configure the node, wait until every camera streams, arm it and activate it."""
        self.say('waiting for the node')
        self.wait(self._change_state.service_is_ready, 'the node')
        self.say('configuring: loading the model, allocating, warming up')
        self.transition(Transition.TRANSITION_CONFIGURE, 'configure')
        if cameras:
            self.say('waiting for every camera')
            self._wait_for_streams(cameras)
        self._arm()
        self.transition(Transition.TRANSITION_ACTIVATE, 'activate')

    def _arm(self) -> None:
        """Arm it; a separate tick, which starts by itself, may need a moment until it can be."""
        end_s = time.monotonic() + START_TIMEOUT_S
        while not (reply := self.call(self._enable, SetBool.Request(data=True), 'enable')).success:
            if time.monotonic() > end_s:
                raise OxygenError(f'enable: expected to arm the node, got: {reply.message}')
            self.spin_for(0.1)

    def take_down(self) -> Any:
        """Deactivate the node and return its memory report, whose counts are final then."""
        self.transition(Transition.TRANSITION_DEACTIVATE, 'deactivate')
        self.spin_for(0.5)  # what was published before the end is still on its way
        return self.call(self._get_memory_report, GetMemoryReport.Request(), 'get_memory_report')

    def memory_report(self, timeout_s: float) -> Any:
        """Return the node's answer to get_memory_report."""
        self.wait(self._get_memory_report.service_is_ready, 'a node named oxygen', timeout_s)
        return self.call(self._get_memory_report, GetMemoryReport.Request(), 'get_memory_report')

    def is_published(self, camera: str) -> bool:
        """Whether somebody publishes images of a camera."""
        topics = (f'{camera}/image_raw', f'{camera}/image_raw/compressed')
        return any(self.count_publishers(topic) for topic in topics)

    def _wait_for_streams(self, cameras: tuple[str, ...]) -> None:
        """Wait for an image of every camera, and for joint states where they are published."""
        seen: set[str] = set()
        topics = [
            (kind, f'{camera}/{topic}', camera)
            for camera in cameras
            for kind, topic in ((Image, 'image_raw'), (CompressedImage, 'image_raw/compressed'))
        ]
        topics.append((JointState, 'joint_states', 'joint_states'))
        subscriptions = [
            self.create_subscription(
                kind, topic, lambda _, name=name: seen.add(name), qos_profile_sensor_data
            )
            for kind, topic, name in topics
        ]
        self.wait(lambda: seen.issuperset(cameras), 'images of ' + ', '.join(cameras))
        if self.count_publishers('joint_states'):
            self.wait(lambda: 'joint_states' in seen, 'joint states')
        for subscription in subscriptions:
            self.destroy_subscription(subscription)

    def transition(self, transition: int, name: str) -> None:
        """Change the node's lifecycle state.

        :raises OxygenError: the node refused.
        """
        request = ChangeState.Request(transition=Transition(id=transition))
        self.wait(self._change_state.service_is_ready, f'service {name}')
        answer = self._change_state.call_async(request)
        state = RepeatedRequest(
            self._get_state, GetState.Request(), _ASK_PERIOD_S, time.monotonic() + _ASK_PERIOD_S
        )
        # The middleware can lose an answer right after discovery, and a long transition may not
        # be asked for twice: the state counts as well.
        self.wait(
            lambda: (
                answer.done()
                or (
                    (reply := state.newest()) is not None
                    and reply.current_state.id == _GOALS[transition]
                )
            ),
            f'an answer to {name}',
        )
        if answer.done() and not answer.result().success:
            raise OxygenError(f'node: expected to {name}, it refused (its log says why)')

    def call(self, client: Any, request: Any, name: str) -> Any:
        """Call a service that may be asked twice, and wait for its answer."""
        self.wait(client.service_is_ready, f'service {name}')
        asked = RepeatedRequest(client, request, _ASK_PERIOD_S)
        self.wait(lambda: asked.newest() is not None, f'an answer to {name}')
        return asked.answer

    def ask(
        self,
        prompt: str,
        on_feedback: Callable[[Dialogue.Feedback], None],
        on_end: Callable[[Dialogue.Result | None], None],
        max_tokens: int = 0,
    ) -> None:
        """Send a goal to ~/dialogue.

        :param on_end: takes the result; None: the goal was rejected.
        :param max_tokens: of the answer; 0: as many as the node allows.
        """

        def on_response(future: Any) -> None:
            handle = future.result()
            if not handle.accepted:
                on_end(None)
                return
            handle.get_result_async().add_done_callback(
                lambda ended: on_end(ended.result().result)
            )

        self._dialogue.send_goal_async(
            Dialogue.Goal(prompt=prompt, max_tokens=max_tokens),
            feedback_callback=lambda message: on_feedback(message.feedback),
        ).add_done_callback(on_response)

    def listen(
        self,
        topic: str,
        kind: Any,
        take: Callable[[Any], None] | None = None,
        qos: QoSProfile | int = 100,
    ) -> None:
        """Count what comes on a topic, record it while `_recording_now`, and take it."""
        msgtype = type_name(kind)

        def on_bytes(data: bytes) -> None:
            self.counts[topic] += 1
            if self._recorder is not None and self._recording_now:
                now_ns = self.get_clock().now().nanoseconds
                name = f'/{topic.lstrip("/")}'
                self._recorder.write_bytes(now_ns, name, msgtype, exact_bytes(data, msgtype))
            if take is not None:
                take(deserialize_message(data, kind))

        self.create_subscription(kind, topic, on_bytes, qos, raw=True)

    def wait(
        self, done: Callable[[], bool], what: str, timeout_s: float = START_TIMEOUT_S
    ) -> None:
        """Spin until `done()`.

        :raises OxygenError: nothing came in time, naming what was waited for.
        """
        end_s = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > end_s:
                raise OxygenError(f'expected {what} within {timeout_s:.0f} s, got nothing')
            self.take()

    def spin_for(self, duration_s: float) -> None:
        """Take what comes for a while."""
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            self.take()

    def take(self) -> None:
        """Take what comes next, or nothing for a moment, while all that is needed runs."""
        self._check()
        rclpy.spin_once(self, timeout_sec=0.05)

    def say(self, line: str) -> None:
        """Show one line of progress."""
        print(f'{self.get_name()}: {line}', file=sys.stderr, flush=True)


def run_driver(make: Callable[[], Driver], run: Callable[[Driver], Result]) -> Result:
    """Make a driver, run it, and leave no context behind.

    :raises KeyboardInterrupt: the process was told to end.
    """
    rclpy.init(args=[])
    driver: Driver | None = None
    try:
        driver = make()
        return run(driver)
    except ExternalShutdownException as error:
        raise KeyboardInterrupt from error
    finally:
        if driver is not None:
            driver.destroy_node()
        driver = None
        rclpy.try_shutdown()  # and with it the executor, which still refers to the node
        # What refers to it in cycles keeps its participant alive: one more that each node of the
        # next run would have to discover.
        gc.collect()
