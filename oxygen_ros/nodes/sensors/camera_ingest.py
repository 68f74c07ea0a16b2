# SPDX-License-Identifier: Apache-2.0
"""The ingest thread: from image messages to frames, the newest of each camera only."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
import threading
import time
from typing import NamedTuple

from sensor_msgs.msg import CompressedImage, Image

from ...ingest import CameraCounts, CameraRules, CameraSink, CameraStream, Latest, Receipt
from ..clocks import ClockBridge, ns_of
from ..faults import FaultLog

_NUM_DURATIONS = 8192  # several minutes at 30 fps


class ReceivedImage(NamedTuple):
    """A message and when it came."""

    message: Image | CompressedImage
    receipt: Receipt
    age: int  # the age of the world in which it came: time has jumped so often before


@dataclass(slots=True)
class CameraInput:
    """One camera between the callbacks, the ingest thread and diagnostics."""

    stream: CameraStream
    slot: Latest[ReceivedImage] = field(default_factory=Latest)
    age: int = 0  # of the newest image that was looked at
    decode_ns: int = 0  # time that the newest one took
    missed: int = 0  # published, and replaced in the middleware or lost on the way
    first_stamp_ns: int = 0  # of the messages, as they came
    last_stamp_ns: int = 0
    # From receipt to the finished frame, of the newest images.
    ingest_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_NUM_DURATIONS))

    @property
    def name(self) -> str:
        """The camera's name."""
        return self.stream.name

    @property
    def counts(self) -> CameraCounts:
        """What became of the messages since the node was configured."""
        return self.stream.counts


class CameraIngest:
    """Decodes images in a thread of its own: callbacks may not, and the engine must not wait.

    `offer` and `forget` belong to the executor's thread; `start` and `stop` to one thread at a
    time. While stopped the newest message of each camera is kept as it came and decoded at the
    next start, so that a robot that is activated sees at once.

    :param sink: called in the ingest thread.
    """

    def __init__(
        self,
        cameras: tuple[str, ...],
        rules: CameraRules,
        clock: ClockBridge,
        sink: CameraSink,
        faults: FaultLog,
    ) -> None:
        self.inputs = {name: CameraInput(CameraStream(name, rules, sink)) for name in cameras}
        self._clock = clock
        self._faults = faults
        self._age = 0
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def offer(self, camera: str, message: Image | CompressedImage) -> None:
        """Take a camera's newest message; it replaces one that has not been decoded yet."""
        source = self.inputs[camera]
        source.counts.received += 1
        source.last_stamp_ns = ns_of(message.header.stamp)
        source.first_stamp_ns = source.first_stamp_ns or source.last_stamp_ns
        receipt = Receipt(time.monotonic_ns(), self._clock.offset_ns())
        source.slot.put(ReceivedImage(message, receipt, self._age))
        self._wake.set()

    def forget(self) -> None:
        """Use nothing that has come so far: time jumped."""
        self._age += 1

    def start(self) -> None:
        """Start decoding, first of all what waits."""
        assert self._thread is None
        self._stopping = False
        for source in self.inputs.values():
            source.stream.begin()
        self._wake.set()
        self._thread = threading.Thread(target=self._run, name='oxygen_ingest', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop decoding."""
        thread = self._thread
        if thread is None:
            return
        self._stopping = True
        self._wake.set()
        thread.join()
        self._thread = None

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            self.decode_newest()

    def decode_newest(self) -> None:
        """Decode what waits of each camera; what the thread does at each wake-up."""
        for source in self.inputs.values():
            received = source.slot.take()
            if received is None or received.age != self._age:
                continue
            if source.age != received.age:
                source.age = received.age
                source.stream.begin()
            try:
                self._ingest(source, received)
            except Exception as error:  # noqa: B902, BLE001 the thread must outlive any image
                source.stream.refuse(f'{type(error).__name__}: {error}')
                self._faults.note(f'ingest of {source.name}', error)

    @staticmethod
    def _ingest(source: CameraInput, received: ReceivedImage) -> None:
        message, receipt, _ = received
        start_ns = time.monotonic_ns()
        if source.stream.take(message, ns_of(message.header.stamp), receipt):
            end_ns = time.monotonic_ns()
            source.decode_ns = end_ns - start_ns
            source.ingest_ns.append(end_ns - receipt.steady_ns)
