# SPDX-License-Identifier: Apache-2.0
"""Plays a recording to the node at its own pace, as if it happened now, or on its own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import sys
from threading import Thread
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy,
    qos_profile_sensor_data,
    QoSProfile,
    ReliabilityPolicy,
)
from rclpy.task import Future
from rosgraph_msgs.msg import Clock as ClockTime
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool

from ...errors import OxygenError
from ...replay.bag import BagError, BagMessage, open_bag
from ...replay.layout import BagLayout, discover
from ...replay.playing import PlayClock, read_stamp, ReadAhead, StampShift, write_stamp
from ...setting import setting
from ..messages import stamp_of
from ..parameters import declare_fixed
from ..process import run_node

_MAX_PAUSE_S = 1.0  # between the end of a run and the next
_LISTENERS_PERIOD_S = 0.05
_NUM_HEARD = 10  # looks that find a subscriber on every topic, before it begins


@dataclass(frozen=True, slots=True)
class PlayerSettings:
    """What the player is told."""

    bag: str = setting('', 'Folder or storage file of the recording')
    rate: float = setting(1.0, 'Pace, in times of the recorded one', low=0.01, high=100.0)
    loop: bool = setting(False, 'Play it again and again')
    start_offset: float = setting(0.0, 'Where in the recording to begin', 's', low=0.0, high=1e6)
    remap: tuple[str, ...] = setting(
        (), 'Recorded topics taken for others, each as /recorded:=/other', none=''
    )
    wait_for_listeners: bool = setting(
        False, 'Begin only when every topic that is played has a subscriber'
    )
    clock_hz: float = setting(
        0.0,
        'How often /clock has the time of the recording, which header stamps then keep; '
        '0: never, stamps are moved to now',
        'Hz',
        low=0.0,
        high=1000.0,
    )


class BagPlayer(Node):
    """Publishes a recording's cameras, joint states and instruction on the topics of the node.

    Messages are sent as the bytes that were recorded, with a new header stamp only. `done`
    completes at the end of the recording; with `loop` never. The service `~/pause` lets it stand
    still. With `clock_hz` the recording's clock rules: stamps stay, but for loops, in which clock
    and stamps run on from those before.

    :raises OxygenError: the recording cannot be read, or a parameter is out of its range.
    """

    def __init__(self, node_name: str = 'bag_player', **kwargs: Any) -> None:
        super().__init__(node_name, **kwargs)
        settings = declare_fixed(self, PlayerSettings)
        path, offset_s = settings.bag, settings.start_offset
        self._rate, self._loop = settings.rate, settings.loop
        if not path:
            raise OxygenError('bag: expected the path of a recording, got nothing')
        self.done: Future[None] = Future()
        self._bag = open_bag(path, _remapping(settings.remap))
        layout = discover(self._bag)
        if not layout.topics:
            raise BagError(path, 'cameras or joint states', f'only {set(layout.ignored.values())}')
        if offset_s > layout.duration_s:
            raise OxygenError(
                f'start_offset: expected at most {layout.duration_s:.1f} s, '
                f"the recording's length, got {offset_s:g}"
            )
        self._start_ns = self._bag.start_ns + round(offset_s * 1e9)
        self._pause_ns = round(_pause_s(layout) * 1e9)
        self._has_clock = settings.clock_hz > 0.0
        self._shift = StampShift(self._start_ns, 1.0 if self._has_clock else self._rate)
        self._origin_ns = self._shift.begin_loop(self._start_ns)  # of the play clock, in ROS time
        self._newest_clock_ns = 0
        self._played = {topic: self._make_publisher(layout, topic) for topic in layout.topics}
        self._instruction_topic = layout.instruction_topic
        self._reported_damage: tuple[str, ...] = ()
        self._report()
        if layout.ignored:
            self.get_logger().info(f'not played: {", ".join(sorted(layout.ignored))}')
        self._pace = PlayClock(self._rate)
        if settings.wait_for_listeners:
            self._pace.pause(True)
            self._num_heard = 0
            self._start_timer = self.create_timer(
                _LISTENERS_PERIOD_S,
                self._begin_when_heard,
                clock=Clock(clock_type=ClockType.STEADY_TIME),
            )
        self.create_service(SetBool, '~/pause', self._on_pause)
        if self._has_clock:
            self._publish_time_at(settings.clock_hz)
        self._thread = Thread(target=self._play, name='bag_player')
        self._thread.start()

    def destroy_node(self) -> None:
        """End the playing and close the recording."""
        if hasattr(self, '_thread'):
            self._pace.stop()
            self._thread.join()
            self._bag.close()
        super().destroy_node()

    def _begin_when_heard(self) -> None:
        if all(publisher.get_subscription_count() for publisher in self._played.values()):
            self._num_heard += 1
        # A subscriber is known here before it knows of the publisher, and would miss the first.
        if self._num_heard == _NUM_HEARD:
            self._pace.pause(False)
            self._start_timer.cancel()

    def _make_publisher(self, layout: BagLayout, topic: str) -> Publisher[Any]:
        name = layout.topics[topic]
        if topic == layout.instruction_topic:
            latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            return self.create_publisher(String, name, latched)
        if topic == layout.joint_topic:
            return self.create_publisher(JointState, name, 10)
        kind = CompressedImage if name.endswith('/compressed') else Image
        return self.create_publisher(kind, name, qos_profile_sensor_data)

    def _report(self) -> None:
        self._reported_damage = self._bag.damage
        report = self.get_logger().warning if self._bag.damage else self.get_logger().info
        report(self._bag.summary())

    def _play(self) -> None:
        try:
            begin_ns = 0
            while True:
                end_ns, is_stopped = self._play_once(begin_ns)
                if self._bag.damage != self._reported_damage:  # found while playing
                    self._report()
                if not self._loop or is_stopped:
                    break
                begin_ns = end_ns + self._pause_ns
        except rclpy_implementation.RCLError as error:
            if self.context.ok():
                self.done.set_exception(error)
        except OxygenError as error:
            self.done.set_exception(error)
        finally:
            if not self.done.done():
                self.done.set_result(None)

    def _play_once(self, begin_ns: int) -> tuple[int, bool]:
        """Play from the start at `begin_ns` of the play clock.

        Return when the last message was due, and whether the node is to end.
        """
        if not self._pace.wait_until(begin_ns):
            return begin_ns, True
        self._begin_run(begin_ns)
        self._publish_earlier_instruction()
        due_ns = begin_ns
        with ReadAhead(self._bag.messages(self._played.keys(), self._start_ns)) as messages:
            for message in messages:
                due_ns = begin_ns + message.stamp_ns - self._start_ns
                if not self._pace.wait_until(due_ns):
                    return due_ns, True
                self._publish(message)
        return due_ns, False

    def _begin_run(self, begin_ns: int) -> None:
        if not self._has_clock:
            self._shift.begin_loop(self.get_clock().now().nanoseconds)
        elif begin_ns:  # the first run keeps the recorded stamps
            self._origin_ns = self._shift.begin_loop(self._origin_ns + begin_ns) - begin_ns

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        stood_ns = self._pace.pause(request.data)
        if not self._has_clock:
            self._shift.delay(stood_ns)
        response.success = True
        response.message = 'paused' if request.data else 'playing'
        return response

    def _publish_time_at(self, rate_hz: float) -> None:
        # As tools publish and hear it: the newest counts.
        publisher = self.create_publisher(
            ClockTime, '/clock', QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        )

        def publish() -> None:
            now_ns = self._origin_ns + self._pace.position_ns()
            self._newest_clock_ns = max(self._newest_clock_ns, now_ns)
            publisher.publish(ClockTime(clock=stamp_of(self._newest_clock_ns)))

        self.create_timer(1.0 / rate_hz, publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publish(self, message: BagMessage) -> None:
        data = message.data
        if message.topic != self._instruction_topic:
            stamp_ns = read_stamp(data)
            if stamp_ns is None:
                return
            data = write_stamp(data, self._shift.moved(message.topic, message.stamp_ns, stamp_ns))
        self._played[message.topic].publish(data)

    def _publish_earlier_instruction(self) -> None:
        # What was said before the start still holds there.
        if self._start_ns == self._bag.start_ns or not self._instruction_topic:
            return
        earlier = self._bag.newest_before(self._instruction_topic, self._start_ns)
        if earlier is not None:
            self._publish(earlier)


def _remapping(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.split(':=') for text in texts]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise OxygenError(f'remap: expected items like /recorded:=/other, got {list(texts)}')
    return {recorded: other for recorded, other in pairs}


def _pause_s(layout: BagLayout) -> float:
    """The slowest camera's period, so that a loop goes on at the recording's pace."""
    topics = [camera.topic for camera in layout.camera_topics] or [layout.joint_topic]
    periods = [1.0 / layout.rates_hz[topic] for topic in topics if layout.rates_hz.get(topic)]
    return min(_MAX_PAUSE_S, max(periods, default=0.1))


def main() -> None:
    """Run the node until the recording ends; the exit status is not 0 when it cannot be played."""
    sys.exit(run_node('bag_player', BagPlayer))


if __name__ == '__main__':
    main()
