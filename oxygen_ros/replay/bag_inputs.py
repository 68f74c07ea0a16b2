# SPDX-License-Identifier: Apache-2.0
"""Recorded messages into the sensor hub, by the rules by which the node takes live ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ingest import CameraRules, CameraSink, CameraStream, JointStream, MessageCounts, Receipt
from ..runtime.sensor_hub import SensorHub
from ..types import Observation
from .bag import Bag, BagError, BagMessage
from .layout import BagLayout
from .restamp import StampShift


class BagSensors(SensorHub):
    """A sensor hub that knows which observation it gave last."""

    newest_id = 0

    def observation(self, now_ns: int) -> Observation | None:
        """Return a new observation, or None."""
        observation = super().observation(now_ns)
        if observation is not None:
            self.newest_id = observation.observation_id
        return observation


class BagInputs:
    """Decodes at the time of recording; on the replay's clock decoding takes no time.

    A stamp of zero or in the future is replaced by the time of recording, and where the stamps are
    of another clock than the recording (a simulator's), their distance is taken out.

    :param start_ns: ROS time at which the steady clock stands at 0.
    :param on_instruction: takes the text of an instruction.
    :param on_time_jump: takes the name of a camera whose stamps jump back far.
    :param on_resize: takes the name of a camera whose images have another size.
    """

    def __init__(
        self,
        bag: Bag,
        layout: BagLayout,
        joints: tuple[str, ...],
        sensors: SensorHub,
        start_ns: int,
        rules: CameraRules,
        on_instruction: Callable[[str], None],
        on_time_jump: Callable[[str], None],
        on_resize: Callable[[str], None],
    ) -> None:
        sink = CameraSink(sensors.put_frame, sensors.drop_frame, on_time_jump, on_resize)
        self.cameras = {
            camera.topic: CameraStream(camera.camera, rules, sink)
            for camera in layout.camera_topics
        }
        self.joints = JointStream(joints, rules, sensors.put_state)
        self._bag = bag
        self._layout = layout
        self._start_ns = start_ns
        self._on_instruction = on_instruction
        self._shift = StampShift(start_ns, 1.0)
        self._shift.begin_loop(start_ns)
        self._instructions = MessageCounts()

    def put(self, message: BagMessage) -> None:
        """Take one message; what cannot be used is counted."""
        counts = self._counts(message.topic)
        counts.received += 1
        try:
            content = self._bag.deserialize(message)
        except BagError as error:
            counts.refused += 1
            counts.newest_problem = str(error)
            return
        camera = self.cameras.get(message.topic)
        if camera is None and message.topic != self._layout.joint_topic:
            self._on_instruction(content.data)
            return
        receipt = Receipt(message.stamp_ns - self._start_ns, self._start_ns)
        stamp_ns = self._stamp_ns(message, content)
        if camera is not None:
            camera.take(content, stamp_ns, receipt)
        else:
            self.joints.take(content.name, content.position, stamp_ns, receipt)

    def put_earlier_instruction(self) -> None:
        """Take the last instruction before the start: what was said there still holds."""
        topic = self._layout.instruction_topic
        earlier = None
        for message in self._bag.messages({topic}) if topic else ():
            if message.stamp_ns >= self._start_ns:
                break
            earlier = message
        if earlier is not None:
            self.put(earlier)

    def problems(self) -> list[str]:
        """Return a line for each topic of which messages were refused."""
        counts = {topic: self._counts(topic) for topic in self._layout.topics}
        return [
            f'{topic}: {count.refused} of {count.received} refused ({count.newest_problem})'
            for topic, count in counts.items()
            if count.refused
        ]

    def _counts(self, topic: str) -> MessageCounts:
        if topic in self.cameras:
            return self.cameras[topic].counts
        return self.joints.counts if topic == self._layout.joint_topic else self._instructions

    def _stamp_ns(self, message: BagMessage, content: Any) -> int:
        """Return the stamp as if the recording's clock were the time of recording."""
        stamp = content.header.stamp
        recorded_ns = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
        return self._shift.moved(message.topic, message.stamp_ns, recorded_ns)
