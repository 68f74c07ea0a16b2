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
    moved = bytearray(data)
    _STAMP[data[1] & 1].pack_into(moved, _STAMP_OFFSET, *divmod(stamp_ns, _SECOND))
    return bytes(moved)


class StampShift:
    """Moves the stamps of one recording to now; the spacing, and skews between cameras, are kept.

    `begin_loop` fixes the offset once for a run through the recording, so that stamps of a later
    run lie behind all of an earlier one. A stamp of 0 means 'not set' and stays. Where the
    recording's stamps are of another clock than its times of recording (a simulator's), the
    distance of the first one is taken out of all.

    :param start_ns: the time of recording that plays at once (ROS time).
    :param rate: seconds of the recording that play in a second.
    """

    def __init__(self, start_ns: int, rate: float) -> None:
        self._start_ns = start_ns
        self._rate = rate
        self._anchor_ns = 0
        self._newest_ns = 0  # of all stamps given so far
        self._earliest_offset_ns = 0  # of the first run's earliest stamp from its anchor
        self._other_clock_ns: int | None = None

    def begin_loop(self, now_ns: int) -> None:
        """Begin a run through the recording at ROS time `now_ns`."""
        if self._newest_ns:
            now_ns = max(now_ns, self._newest_ns + 1 - self._earliest_offset_ns)
        self._anchor_ns = now_ns

    def moved(self, recorded_ns: int, stamp_ns: int) -> int:
        """Return the new stamp of a message with header stamp `stamp_ns`."""
        if stamp_ns == 0:
            return 0
        if self._other_clock_ns is None:
            distance_ns = stamp_ns - recorded_ns
            self._other_clock_ns = distance_ns if abs(distance_ns) > OTHER_CLOCK_NS else 0
        stamp_ns -= self._other_clock_ns
        offset_ns = round((stamp_ns - self._start_ns) / self._rate)
        moved_ns = self._anchor_ns + offset_ns
        if abs(offset_ns - (recorded_ns - self._start_ns) / self._rate) < OTHER_CLOCK_NS:
            self._newest_ns = max(self._newest_ns, moved_ns)
            self._earliest_offset_ns = min(self._earliest_offset_ns, offset_ns)
        return moved_ns if 0 <= moved_ns < (1 << 31) * _SECOND else 0
