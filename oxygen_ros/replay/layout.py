# SPDX-License-Identifier: Apache-2.0
"""What a recording holds for the robot (cameras, joints, instruction) and where it plays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..ingest.pixel_formats import DEPTH_ENCODINGS
from .bag import Bag, BagError, Topic

IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED_IMAGE = 'sensor_msgs/msg/CompressedImage'
JOINT_STATE = 'sensor_msgs/msg/JointState'
STRING = 'std_msgs/msg/String'
INSTRUCTION_NAMES = ('instruction', 'language_instruction', 'task', 'prompt')

# Longest first. What is left of a topic's name in front of one of these is the camera's name.
_IMAGE_ENDINGS = (
    '/image_raw/compressed',
    '/image_color/compressed',
    '/image_rect/compressed',
    '/image/compressed',
    '/compressed',
    '/image_raw',
    '/image_color',
    '/image_rect',
    '/image',
)


@dataclass(frozen=True, slots=True)
class CameraTopic:
    """A camera of a recording."""

    camera: str
    topic: str  # in the recording
    compressed: bool

    @property
    def plays_on(self) -> str:
        """The relative topic on which the node listens for this camera."""
        return f'{self.camera}/image_raw' + ('/compressed' if self.compressed else '')


@dataclass(frozen=True, slots=True)
class BagLayout:
    """Which topics of a recording are played, and what they hold."""

    camera_topics: tuple[CameraTopic, ...]  # by the camera's name
    joint_topic: str  # empty: none
    joint_names: tuple[str, ...]
    instruction_topic: str  # empty: none
    duration_s: float
    rates_hz: dict[str, float]  # mean rate of every topic of the recording
    ignored: dict[str, str] = field(default_factory=dict)  # type by topic that is not played

    @property
    def cameras(self) -> tuple[str, ...]:
        """The cameras' names, sorted."""
        return tuple(camera.camera for camera in self.camera_topics)

    @property
    def topics(self) -> dict[str, str]:
        """Topic of the recording to the relative topic it is played on."""
        played = {camera.topic: camera.plays_on for camera in self.camera_topics}
        if self.joint_topic:
            played[self.joint_topic] = 'joint_states'
        if self.instruction_topic:
            played[self.instruction_topic] = 'instruction'
        return played


def camera_name(topic: str) -> str:
    """Return a camera's name by its image topic: '/wrist/image/compressed' is 'wrist'."""
    for ending in _IMAGE_ENDINGS:
        if topic.endswith(ending) and len(topic) > len(ending):
            return topic[: -len(ending)].strip('/')
    return topic.strip('/')


def discover(bag: Bag) -> BagLayout:
    """Find the cameras, joints and instruction of a recording.

    Of a camera that was recorded raw and compressed, what has more messages is played. Depth
    images are left out where there are colour images.

    :raises BagError: there are no messages.
    """
    topics = [topic for topic in bag.topics if topic.count]
    if not topics:
        raise BagError(bag.path, 'a recording with messages', 'one without any')
    images = [topic for topic in topics if topic.msgtype in (IMAGE, COMPRESSED_IMAGE)]
    joints = _fullest((topic for topic in topics if topic.msgtype == JOINT_STATE), '/joint_states')
    text = _fullest(
        topic
        for topic in topics
        if topic.msgtype == STRING and topic.name.rsplit('/', 1)[-1] in INSTRUCTION_NAMES
    )
    joint_topic, instruction_topic = joints.name if joints else '', text.name if text else ''
    first = _first_messages(bag, (*images, *((joints,) if joints else ())))
    colour = [topic for topic in images if not _is_depth(first.get(topic.name))] or images
    cameras = tuple(
        CameraTopic(name, topic.name, topic.msgtype == COMPRESSED_IMAGE)
        for name, topic in sorted(_choose(colour).items())
    )
    played = {joint_topic, instruction_topic, *(camera.topic for camera in cameras)}
    return BagLayout(
        camera_topics=cameras,
        joint_topic=joint_topic,
        joint_names=tuple(getattr(first.get(joint_topic), 'name', ())),
        instruction_topic=instruction_topic,
        duration_s=bag.duration_s,
        rates_hz={topic.name: _rate_hz(topic, bag.duration_s) for topic in topics},
        ignored={topic.name: topic.msgtype for topic in bag.topics if topic.name not in played},
    )


def discover_cameras(bag: Bag) -> BagLayout:
    """Find the cameras, joints and instruction of a recording that has images.

    :raises BagError: there are no messages, or no images.
    """
    layout = discover(bag)
    if not layout.cameras:
        others = ', '.join(sorted(set(layout.ignored.values())))
        raise BagError(bag.path, 'a recording with images', f'only {others}' if others else 'none')
    return layout


def _choose(images: Iterable[Topic]) -> dict[str, Topic]:
    """One topic for each camera, by the camera's name."""
    cameras: dict[str, Topic] = {}
    for topic in sorted(images, key=lambda topic: (topic.count, topic.msgtype == IMAGE)):
        cameras[camera_name(topic.name)] = topic
    return cameras


def _fullest(topics: Iterable[Topic], preferred: str = '') -> Topic | None:
    """The topic with the most messages, of those first whose names end as preferred."""
    return max(
        topics, default=None, key=lambda topic: (topic.name.endswith(preferred), topic.count)
    )


def _first_messages(bag: Bag, topics: Iterable[Topic]) -> dict[str, Any]:
    missing = {topic.name for topic in topics}
    first: dict[str, Any] = {}
    for message in bag.messages(frozenset(missing)):
        if message.topic in missing:
            missing.remove(message.topic)
            try:
                first[message.topic] = bag.deserialize(message)
            except BagError:
                first[message.topic] = None  # the node will refuse it, and say so
            if not missing:
                break
    return first


def _is_depth(image: Any) -> bool:
    encoding = str(getattr(image, 'encoding', '') or getattr(image, 'format', ''))
    return encoding.split(';')[0].strip() in DEPTH_ENCODINGS or 'compressedDepth' in encoding


def _rate_hz(topic: Topic, duration_s: float) -> float:
    return (topic.count - 1) / duration_s if topic.count > 1 and duration_s > 0.0 else 0.0
