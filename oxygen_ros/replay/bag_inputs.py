"""Recorded messages into the sensor hub, by the rules by which the node takes live ones."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ingest import decode_compressed, decode_image, ImageError, JointMapper, JointStateError
from ..runtime.sensor_hub import SensorHub
from ..types import CameraFrame, Observation, RobotState
from .bag import Bag, BagError, BagMessage
from .layout import BagLayout
from .restamp import StampShift

TIME_JUMP_NS = 1_000_000_000  # stamps that go back by less are images out of order


@dataclass(slots=True)
class InputCounts:
    """What became of the messages of one topic."""

    received: int = 0
    used: int = 0
    refused: int = 0  # no image or state could be made of it
    skipped: int = 0  # the stamp of the image before it, or an older one
    newest_problem: str = ''


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
    :param on_time_jump: called when a camera's stamps jump back far.
    """

    def __init__(self, bag: Bag, layout: BagLayout, joints: tuple[str, ...], sensors: SensorHub,
                 start_ns: int, future_tolerance_s: float, on_instruction: Callable[[str], None],
                 on_time_jump: Callable[[], None]) -> None:
        self.counts = {topic: InputCounts() for topic in layout.topics}
        self._bag = bag
        self._layout = layout
        self._camera_of = {camera.topic: camera.camera for camera in layout.camera_topics}
        self._mapper = JointMapper(joints)
        self._sensors = sensors
        self._start_ns = start_ns
        self._future_tolerance_ns = round(future_tolerance_s * 1e9)
        self._on_instruction = on_instruction
        self._on_time_jump = on_time_jump
        self._shift = StampShift(start_ns, 1.0)
        self._shift.begin_loop(start_ns)
        self._newest_ns: dict[str, int] = {}

    def put(self, message: BagMessage) -> None:
        """Take one message; what cannot be used is counted."""
        counts = self.counts[message.topic]
        counts.received += 1
        try:
            content = self._bag.deserialize(message)
            if message.topic in self._camera_of:
                used = self._put_image(message, content)
            elif message.topic == self._layout.joint_topic:
                used = self._put_state(message, content)
            else:
                self._on_instruction(content.data)
                used = True
        except (BagError, ImageError, JointStateError) as error:
            counts.refused += 1
            counts.newest_problem = str(error)
            return
        counts.used += used
        counts.skipped += not used

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
        return [f'{topic}: {counts.refused} of {counts.received} refused '
                f'({counts.newest_problem})'
                for topic, counts in self.counts.items() if counts.refused]

    def _put_image(self, message: BagMessage, content: Any) -> bool:
        camera = self._camera_of[message.topic]
        stamp_ns = self._stamp_ns(message, content)
        before_ns = self._newest_ns.get(camera)
        if before_ns is not None and stamp_ns <= before_ns:
            if before_ns - stamp_ns < TIME_JUMP_NS:
                return False
            self._on_time_jump()
        if hasattr(content, 'format'):
            image = decode_compressed(content.format, content.data)
        else:
            image = decode_image(content.encoding, content.height, content.width, content.step,
                                 content.is_bigendian, content.data)
        self._newest_ns[camera] = stamp_ns
        self._sensors.put_frame(CameraFrame(camera, stamp_ns, stamp_ns - self._start_ns, image))
        return True

    def _put_state(self, message: BagMessage, content: Any) -> bool:
        positions = self._mapper.map(content.name, content.position)
        stamp_ns = self._stamp_ns(message, content)
        self._sensors.put_state(
            RobotState(stamp_ns, stamp_ns - self._start_ns, positions.astype(np.float32)))
        return True

    def _stamp_ns(self, message: BagMessage, content: Any) -> int:
        stamp = content.header.stamp
        recorded_ns = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
        stamp_ns = self._shift.moved(message.topic, message.stamp_ns, recorded_ns)
        if stamp_ns <= 0 or stamp_ns > message.stamp_ns + self._future_tolerance_ns:
            return message.stamp_ns
        return stamp_ns
