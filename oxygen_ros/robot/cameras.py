# SPDX-License-Identifier: Apache-2.0
"""From image messages to frames, the newest of each camera only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..ingest import CameraCounts, CameraRules, CameraSink, CameraStream, Latest, Receipt
from .clock import RobotClock
from .faults import FaultLog

_NUM_DURATIONS = 8192  # several minutes at 30 fps


class ReceivedImage(NamedTuple):
    """A message and when it came."""

    message: Any  # with the fields of a sensor_msgs Image or CompressedImage
    stamp_ns: int  # of its header
    receipt: Receipt
    age: int  # the age of the world in which it came: time has jumped so often before


@dataclass(slots=True)
class CameraInput:
    """One camera between those who bring messages, who decodes them, and diagnostics."""

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
        """What became of the messages since the robot was configured."""
        return self.stream.counts


class CameraInputs:
    """Takes messages as they come and decodes the newest when asked to.

    `offer` and `forget` belong to one thread, `begin` and `decode_newest` to one at a time. What
    is not decoded yet waits as it came, so that a robot that is activated sees at once.

    :param sink: called by the thread that decodes.
    :param on_offer: called after each message; must return at once.
    """

    def __init__(
        self,
        cameras: Sequence[str],
        rules: CameraRules,
        clock: RobotClock,
        sink: CameraSink,
        faults: FaultLog,
        on_offer: Callable[[], None],
    ) -> None:
        self.inputs = {name: CameraInput(CameraStream(name, rules, sink)) for name in cameras}
        self._clock = clock
        self._faults = faults
        self._on_offer = on_offer
        self._age = 0

    def offer(self, camera: str, message: Any, stamp_ns: int, receipt: Receipt) -> None:
        """Take a camera's newest message; it replaces one that has not been decoded yet."""
        source = self.inputs[camera]
        source.counts.received += 1
        source.last_stamp_ns = stamp_ns
        source.first_stamp_ns = source.first_stamp_ns or stamp_ns
        source.slot.put(ReceivedImage(message, stamp_ns, receipt, self._age))
        self._on_offer()

    def forget(self) -> None:
        """Use nothing that has come so far: time jumped."""
        self._age += 1

    def begin(self) -> None:
        """Look at each camera as if for the first time, at activation."""
        for source in self.inputs.values():
            source.stream.begin()

    def decode_newest(self) -> None:
        """Decode what waits of each camera."""
        for source in self.inputs.values():
            received = source.slot.take()
            if received is None or received.age != self._age:
                continue
            if source.age != received.age:
                source.age = received.age
                source.stream.begin()
            try:
                self._decode(source, received)
            except Exception as error:  # noqa: B902, BLE001 who decodes must outlive any image
                source.stream.refuse(f'{type(error).__name__}: {error}')
                self._faults.note(f'ingest of {source.name}', error)

    def _decode(self, source: CameraInput, received: ReceivedImage) -> None:
        start_ns = self._clock.now_ns()
        if source.stream.take(received.message, received.stamp_ns, received.receipt):
            end_ns = self._clock.now_ns()
            source.decode_ns = end_ns - start_ns
            source.ingest_ns.append(end_ns - received.receipt.steady_ns)
