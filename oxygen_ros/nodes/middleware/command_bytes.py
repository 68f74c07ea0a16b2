# SPDX-License-Identifier: Apache-2.0
"""A command message as the bytes of the wire, in which a tick replaces the numbers alone.

Upstream: ros2/rclpy issue 836 (conversion of messages is slow, open). Seen with rclpy 9.1.2. It
may go when publishing a message of Python costs about what its bytes do.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message

# No two are alike, none is 0 or a plain number: found in the bytes, they are the array.
_MARKS_SCALE = np.pi * 1e-3


class CommandBytes:
    """Serialised once: to convert a message of Python's again takes most of a publisher's time.

    What `message` is changed to afterwards has no effect; `write` replaces the numbers.

    :param message: complete; the middleware publishes its bytes as it would the message.
    :param values: its array of numbers, of the same object.
    :raises RuntimeError: the array was not found in the bytes, as one piece.
    """

    def __init__(self, message: Any, values: array[float]) -> None:
        kept = values[:]
        marks = np.arange(1, len(values) + 1) * _MARKS_SCALE
        np.frombuffer(values, dtype=np.float64)[:] = marks
        data = serialize_message(message)
        begin = data.find(marks.tobytes())
        values[:] = kept
        if begin < 0:
            raise RuntimeError(
                f'{type(message).__name__}: expected its numbers as one piece of '
                f'{len(data)} bytes, found none'
            )
        self._data = bytearray(data)
        self._values = np.frombuffer(self._data, dtype=np.float64, count=len(values), offset=begin)
        self.write(np.array(kept))

    def write(self, values: np.ndarray) -> None:
        """Replace the numbers, [number of them]."""
        self._values[:] = values

    def read(self) -> bytes:
        """Return the message as `Publisher.publish` takes it."""
        return bytes(self._data)
