"""The ingest thread: from image messages to frames, the newest of each camera only."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
import threading
import time
from typing import NamedTuple

from sensor_msgs.msg import CompressedImage, Image

from ...ingest import decode_compressed, decode_image, ImageError, Latest
from ...types import CameraFrame
from ..clocks import ClockBridge, ns_of
from ..faults import FaultLog

_NUM_DURATIONS = 8192  # several minutes at 30 fps


class ReceivedImage(NamedTuple):
    """A message and when it came."""

    message: Image | CompressedImage
    receipt_ns: int  # steady clock
    offset_ns: int  # ROS time minus steady time at receipt


@dataclass(slots=True)
class CameraCounts:
    """What became of a camera's messages since the node was configured."""

    received: int = 0
    decoded: int = 0
    refused: int = 0  # no image could be made of it
    repeated: int = 0  # the stamp of the image before it
    backward: int = 0  # an older stamp than that of the image before it
    replaced_stamps: int = 0  # zero or in the future: the time of receipt took their place
    newest_problem: str = ''


@dataclass(slots=True)
class CameraInput:
    """One camera between the callbacks, the ingest thread and diagnostics."""

    name: str
    slot: Latest[ReceivedImage] = field(default_factory=Latest)
    counts: CameraCounts = field(default_factory=CameraCounts)
    stamp_ns: int | None = None  # of the newest decoded image
    size: tuple[int, int] | None = None  # width and height of it (px)
    decode_ns: int = 0  # time that the newest one took
    # From receipt to the finished frame, of the newest images.
    ingest_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_NUM_DURATIONS))


class CameraIngest:
    """Decodes images in a thread of its own: callbacks may not, and the engine must not wait.

    `offer` belongs to the executor's thread; `start` and `stop` to one thread at a time.

    :param put_frame: takes a decoded frame; called in the ingest thread.
    :param on_time_jump: called in the ingest thread when a camera's stamps jump back far.
    """

    # Stamps that go back by less are images out of order; by more, time itself has jumped.
    TIME_JUMP_NS = 1_000_000_000

    def __init__(self, cameras: tuple[str, ...], future_tolerance_s: float, clock: ClockBridge,
                 put_frame: Callable[[CameraFrame], None], on_time_jump: Callable[[str], None],
                 faults: FaultLog) -> None:
        self.inputs = {name: CameraInput(name) for name in cameras}
        self._future_tolerance_ns = round(future_tolerance_s * 1e9)
        self._clock = clock
        self._put_frame = put_frame
        self._on_time_jump = on_time_jump
        self._faults = faults
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def offer(self, camera: str, message: Image | CompressedImage) -> None:
        """Take a camera's newest message; it replaces one that has not been decoded yet."""
        source = self.inputs[camera]
        source.counts.received += 1
        if self._thread is None:
            return
        source.slot.put(ReceivedImage(message, time.monotonic_ns(), self._clock.offset_ns()))
        self._wake.set()

    def start(self) -> None:
        """Start decoding."""
        assert self._thread is None
        self._stopping = False
        for source in self.inputs.values():
            source.stamp_ns = None
        self._thread = threading.Thread(target=self._run, name='oxygen_ingest', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop decoding and drop what is waiting."""
        thread = self._thread
        if thread is None:
            return
        self._stopping = True
        self._wake.set()
        thread.join()
        self._thread = None
        for source in self.inputs.values():
            source.slot.take()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            for source in self.inputs.values():
                received = source.slot.take()
                if received is None:
                    continue
                try:
                    self._ingest(source, received)
                except ImageError as error:
                    source.counts.refused += 1
                    source.counts.newest_problem = str(error)
                except Exception as error:  # noqa: B902, BLE001 the thread must outlive any image
                    source.counts.refused += 1
                    source.counts.newest_problem = f'{type(error).__name__}: {error}'
                    self._faults.note(f'ingest of {source.name}', error)

    def _ingest(self, source: CameraInput, received: ReceivedImage) -> None:
        stamp_ns = self._stamp_ns(source, received)
        counts = source.counts
        before_ns = source.stamp_ns
        if before_ns is not None and stamp_ns <= before_ns:
            if stamp_ns == before_ns:
                counts.repeated += 1
                return
            counts.backward += 1
            if before_ns - stamp_ns < self.TIME_JUMP_NS:
                return
            self._on_time_jump(source.name)
        start_ns = time.monotonic_ns()
        message = received.message
        if isinstance(message, Image):
            image = decode_image(message.encoding, message.height, message.width, message.step,
                                 message.is_bigendian, message.data)
        else:
            image = decode_compressed(message.format, message.data)
        source.decode_ns = time.monotonic_ns() - start_ns
        source.stamp_ns = stamp_ns
        source.size = (image.shape[1], image.shape[0])
        counts.decoded += 1
        source.ingest_ns.append(time.monotonic_ns() - received.receipt_ns)
        self._put_frame(CameraFrame(source.name, stamp_ns, stamp_ns - received.offset_ns, image))

    def _stamp_ns(self, source: CameraInput, received: ReceivedImage) -> int:
        """Return the stamp in ROS time, or the time of receipt where it cannot be meant."""
        stamp_ns = ns_of(received.message.header.stamp)
        receipt_ns = received.receipt_ns + received.offset_ns
        if stamp_ns <= 0 or stamp_ns > receipt_ns + self._future_tolerance_ns:
            source.counts.replaced_stamps += 1
            return receipt_ns
        return stamp_ns
