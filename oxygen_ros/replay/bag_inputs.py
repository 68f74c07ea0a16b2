# SPDX-License-Identifier: Apache-2.0
"""Recorded messages into a robot, at the times of recording and by the rules of live ones."""

from __future__ import annotations

from collections.abc import Iterator
import functools
from typing import Any

from ..ingest import MessageCounts
from ..robot.robot import Robot
from ..runtime.virtual_world import Event
from .bag import Bag, BagError, BagMessage
from .layout import BagLayout
from .playing import StampShift


class BagInputs:
    """Gives a robot the messages of a recording.

    A stamp of zero or in the future is replaced by the time of recording, and where the stamps are
    of another clock than the recording (a simulator's), their distance is taken out.

    :param start_ns: ROS time at which the steady clock stands at 0.
    """

    def __init__(self, bag: Bag, layout: BagLayout, robot: Robot, start_ns: int) -> None:
        self._bag = bag
        self._layout = layout
        self._robot = robot
        self._start_ns = start_ns
        self._cameras = {camera.topic: camera.camera for camera in layout.camera_topics}
        self._shift = StampShift(start_ns, 1.0)
        self._shift.begin_loop(start_ns)
        self._instructions = MessageCounts()

    def events(self) -> Iterator[Event]:
        """Return what happens from the start on; first the last instruction before it."""
        topic = self._layout.instruction_topic
        earlier = self._bag.newest_before(topic, self._start_ns) if topic else None
        if earlier is not None:  # what was said there still holds
            yield Event(0, functools.partial(self._put, earlier))
        for message in self._bag.messages(self._layout.topics.keys(), self._start_ns):
            yield Event(message.stamp_ns - self._start_ns, functools.partial(self._put, message))

    def _put(self, message: BagMessage) -> None:
        """Give one message to the robot; what cannot be used is counted."""
        topic, robot = message.topic, self._robot
        try:
            content = self._bag.deserialize(message)
        except BagError as error:
            counts = self._counts(topic)
            counts.received += 1
            counts.refused += 1
            counts.newest_problem = str(error)
            return
        if topic in self._cameras:
            robot.take_image(self._cameras[topic], content, self._stamp_ns(message, content))
        elif topic == self._layout.joint_topic:
            stamp_ns = self._stamp_ns(message, content)
            robot.take_joints(content.name, content.position, stamp_ns)
        else:
            self._instructions.received += 1
            problem = robot.take_instruction(content.data, 'topic instruction')
            if problem:
                self._instructions.refused += 1
                self._instructions.newest_problem = problem

    def problems(self) -> list[str]:
        """Return a line for each topic of which messages were refused."""
        counts = {topic: self._counts(topic) for topic in self._layout.topics}
        return [
            f'{topic}: {count.refused} of {count.received} refused ({count.newest_problem})'
            for topic, count in counts.items()
            if count.refused
        ]

    def _counts(self, topic: str) -> MessageCounts:
        if topic in self._cameras:
            return self._robot.cameras.inputs[self._cameras[topic]].counts
        joint_topic = self._layout.joint_topic
        return self._robot.joints.counts if topic == joint_topic else self._instructions

    def _stamp_ns(self, message: BagMessage, content: Any) -> int:
        """Return the stamp as if the recording's clock were the time of recording."""
        stamp = content.header.stamp
        recorded_ns = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
        return self._shift.moved(message.topic, message.stamp_ns, recorded_ns)
