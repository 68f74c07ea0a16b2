# SPDX-License-Identifier: Apache-2.0
"""Header stamps of recorded messages moved to the time of playing, as bytes."""

from __future__ import annotations

import struct

# A message that begins with a std_msgs/Header has its stamp right behind the 4 bytes that say how
# the rest is encoded; bit 0 of the second of those is set for little-endian.
_STAMP_OFFSET = 4
_STAMP = (struct.Struct('>iI'), struct.Struct('<iI'))
_SECOND = 1_000_000_000
OTHER_CLOCK_NS = 60 * _SECOND  # a stamp this far from the time of recording is of another clock


def read_stamp(data: bytes) -> int | None:
    """Return the header stamp in ns, or None: too short to have one."""
    if len(data) < _STAMP_OFFSET + 8:
        return None
    seconds, nanoseconds = _STAMP[data[1] & 1].unpack_from(data, _STAMP_OFFSET)
    return int(seconds) * _SECOND + int(nanoseconds)


def write_stamp(data: bytes, stamp_ns: int) -> bytes:
    """Return the message with another header stamp."""
    stamp = _STAMP[data[1] & 1].pack(*divmod(stamp_ns, _SECOND))
    return b''.join((data[:_STAMP_OFFSET], stamp, memoryview(data)[_STAMP_OFFSET + 8 :]))


class StampShift:
    """Moves the stamps of one recording to now; the spacing, and skews between cameras, are kept.

    `begin_loop` fixes the offset once for a run through the recording, so that a topic's stamps of
    a later run lie behind all of an earlier one. A stamp of 0 means 'not set' and stays. Where the
    recording's stamps are of another clock than its times of recording (a simulator's), the
    distance of the first one is taken out of all.

    :param start_ns: the time of recording that plays at once (ROS time).
    :param rate: seconds of the recording that play in a second.
    """

    def __init__(self, start_ns: int, rate: float) -> None:
        self._start_ns = start_ns
        self._rate = rate
        self._anchor_ns = 0
        self._offsets_ns: dict[str, tuple[int, int]] = {}  # smallest, largest of each topic so far
        self._other_clock_ns: int | None = None

    def begin_loop(self, now_ns: int) -> int:
        """Begin a run through the recording at ROS time `now_ns`, or as soon after as stamps rise.

        Return when it begins.
        """
        span_ns = max(
            (largest - smallest for smallest, largest in self._offsets_ns.values()), default=-1
        )
        self._anchor_ns = max(now_ns, self._anchor_ns + span_ns + 1)
        return self._anchor_ns

    def delay(self, duration_ns: int) -> None:
        """Move the rest of a run to a later time."""
        self._anchor_ns += duration_ns

    def moved(self, topic: str, recorded_ns: int, stamp_ns: int) -> int:
        """Return the new header stamp of a message."""
        if stamp_ns == 0:
            return 0
        if self._other_clock_ns is None:
            distance_ns = stamp_ns - recorded_ns
            self._other_clock_ns = distance_ns if abs(distance_ns) > OTHER_CLOCK_NS else 0
        offset_ns = round((stamp_ns - self._other_clock_ns - self._start_ns) / self._rate)
        if abs(stamp_ns - self._other_clock_ns - recorded_ns) <= OTHER_CLOCK_NS:
            smallest, largest = self._offsets_ns.get(topic, (offset_ns, offset_ns))
            self._offsets_ns[topic] = (min(smallest, offset_ns), max(largest, offset_ns))
        moved_ns = self._anchor_ns + offset_ns
        return moved_ns if 0 <= moved_ns < (1 << 31) * _SECOND else 0
