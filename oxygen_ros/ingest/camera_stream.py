# SPDX-License-Identifier: Apache-2.0
"""One camera's messages in the order of their coming: which become frames, and what is odd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..types import CameraFrame
from .compressed_decoder import decode_compressed
from .errors import ImageError
from .frozen import FrozenImages
from .image_decoder import decode_image
from .pixel_formats import Pixels
from .rules import CameraRules, MessageCounts, Receipt, TIME_JUMP_NS, trusted_stamp


@dataclass(slots=True)
class CameraCounts(MessageCounts):
    """What became of a camera's messages."""

    decoded: int = 0  # handed on as frames
    frozen: int = 0  # the pixels have stood still for too long
    repeated: int = 0  # the stamp of the image before it
    backward: int = 0  # an older stamp than that of the image before it
    replaced_stamps: int = 0  # zero or in the future: the time of receipt took their place
    resized: int = 0  # of another size than the image before it


@dataclass(frozen=True, slots=True)
class CameraSink:
    """Who is told; each takes the frame or the camera's name and returns at once."""

    put_frame: Callable[[CameraFrame], None]
    drop_frame: Callable[[str], None]  # frozen: what it gave before is no view of now either
    on_time_jump: Callable[[str], None]  # its stamps went back far
    on_resize: Callable[[str], None]  # it sees something else from now on; before the frame


class CameraStream:
    """Takes what a camera sends. One thread at a time; any thread may read the figures.

    :param name: of the camera.
    """

    def __init__(self, name: str, rules: CameraRules, sink: CameraSink) -> None:
        self.name = name
        self.counts = CameraCounts()
        self.size: tuple[int, int] | None = None  # width and height of the newest image (px)
        self.first_size: tuple[int, int] | None = None  # of the first one since the beginning
        self._tolerance_ns = round(rules.future_tolerance_s * 1e9)
        self._frozen = FrozenImages(round(rules.frozen_after_s * 1e9))
        self._sink = sink
        self._newest_ns: int | None = None  # stamp of the newest decoded image

    @property
    def frozen_s(self) -> float | None:
        """For how long the pixels have stood still, where that is a fault."""
        return self._frozen.still_ns * 1e-9 if self._frozen.is_frozen else None

    def begin(self) -> None:
        """Forget what came before: time jumped, or the camera is listened to again."""
        self._newest_ns = None
        self._frozen.forget()
        self.size = self.first_size = None

    def take(self, message: Any, stamp_ns: int, receipt: Receipt) -> bool:
        """Take a message; return whether it became a frame. What is no image is counted.

        :param message: with the fields of a sensor_msgs Image or CompressedImage.
        :param stamp_ns: its header stamp.
        """
        try:
            return self._take(message, stamp_ns, receipt)
        except ImageError as error:
            self.refuse(str(error))
            return False

    def refuse(self, problem: str) -> None:
        """Count a message that is no image."""
        self.counts.refused += 1
        self.counts.newest_problem = problem

    def _take(self, message: Any, stamp_ns: int, receipt: Receipt) -> bool:
        counts = self.counts
        stamp = trusted_stamp(stamp_ns, receipt, self._tolerance_ns)
        counts.replaced_stamps += stamp.replaced
        if not self._is_next(stamp.stamp_ns):
            return False
        image = _decode(message)
        self._newest_ns = stamp.stamp_ns
        self._note_size((image.shape[1], image.shape[0]))
        if self._frozen.see(image, stamp.stamp_ns):
            counts.frozen += 1
            self._sink.drop_frame(self.name)
            return False
        counts.decoded += 1
        self._sink.put_frame(CameraFrame(self.name, stamp.stamp_ns, stamp.steady_ns, image))
        return True

    def _is_next(self, stamp_ns: int) -> bool:
        """Return whether an image of this stamp is to be looked at."""
        before_ns = self._newest_ns
        if before_ns is None or stamp_ns > before_ns:
            return True
        if stamp_ns == before_ns:
            self.counts.repeated += 1
            return False
        self.counts.backward += 1
        if before_ns - stamp_ns < TIME_JUMP_NS:
            return False
        self._frozen.forget()
        self._sink.on_time_jump(self.name)
        return True

    def _note_size(self, size: tuple[int, int]) -> None:
        if self.size is not None and size != self.size:
            self.counts.resized += 1
            self._sink.on_resize(self.name)
        self.size = size
        self.first_size = self.first_size or size


def _decode(message: Any) -> Pixels:
    if hasattr(message, 'format'):
        return decode_compressed(message.format, message.data)
    return decode_image(
        message.encoding,
        message.height,
        message.width,
        message.step,
        message.is_bigendian,
        message.data,
    )
