# SPDX-License-Identifier: Apache-2.0
"""What playing a recording as if it happened now takes: pace, reading ahead, stamps moved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
import struct
from threading import Condition, Thread
import time

from .storage import BagError, BagMessage

# A message that begins with a std_msgs/Header has its stamp right behind the 4 bytes that say how
# the rest is encoded; bit 0 of the second of those is set for little-endian.
_STAMP_OFFSET = 4
_STAMP = (struct.Struct('>iI'), struct.Struct('<iI'))
_SECOND = 1_000_000_000
OTHER_CLOCK_NS = 60 * _SECOND  # a stamp this far from the time of recording is of another clock


class PlayClock:
    """A position in recorded time that advances at a rate, or stands still. Any thread.

    It begins at 0 and never goes back; it runs on through all loops.

    :param rate: seconds of the recording that pass in a second.
    :param now_ns: a steady clock.
    """

    def __init__(self, rate: float, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._rate = rate
        self._now_ns = now_ns
        self._changed = Condition()
        self._anchor_ns = now_ns()  # at this time ...
        self._position_ns = 0  # ... it was here
        self._is_paused = self._is_stopped = False

    def position_ns(self) -> int:
        """Return how far it is."""
        with self._changed:
            return self._position()

    def pause(self, is_paused: bool) -> int:
        """Stand still, or go on; return how long it has stood still (ns), 0 where it did not."""
        with self._changed:
            stood_ns = self._now_ns() - self._anchor_ns if self._is_paused else 0
            self._position_ns = self._position()
            self._anchor_ns = self._now_ns()
            self._is_paused = is_paused
            self._changed.notify_all()
            return stood_ns

    def stop(self) -> None:
        """End every wait."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def wait_until(self, position_ns: int) -> bool:
        """Wait until it is there; return False when it was stopped."""
        with self._changed:
            while not self._is_stopped:
                left_s = (position_ns - self._position()) * 1e-9 / self._rate
                if self._is_paused:
                    self._changed.wait()
                elif left_s <= 0.0:
                    return True
                else:
                    self._changed.wait(left_s)
            return False

    def _position(self) -> int:
        if self._is_paused:
            return self._position_ns
        return self._position_ns + round((self._now_ns() - self._anchor_ns) * self._rate)


class ReadAhead:
    """Iterates over messages that another thread reads, at most `max_bytes` ahead.

    Use it in a `with` statement: leaving it ends the thread. The iterator belongs to one thread;
    what the source raises is raised there, after the messages read before it.
    """

    def __init__(self, source: Iterator[BagMessage], max_bytes: int = 32 << 20) -> None:
        self._source = source
        self._max_bytes = max_bytes
        self._messages: deque[BagMessage] = deque()
        self._num_bytes = 0
        self._ended = False
        self._error: BagError | None = None
        self._changed = Condition()
        self._thread = Thread(target=self._read, name='read_ahead', daemon=True)

    def __enter__(self) -> ReadAhead:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def __iter__(self) -> Iterator[BagMessage]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._messages or self._ended)
                if not self._messages:
                    if self._error is not None:
                        raise self._error
                    return
                message = self._messages.popleft()
                self._num_bytes -= len(message.data)
                self._changed.notify_all()
            yield message

    def _read(self) -> None:
        try:
            for message in self._source:
                with self._changed:
                    # One message is taken whatever its size, else a large one would never fit.
                    self._changed.wait_for(
                        lambda: self._num_bytes < self._max_bytes or self._ended
                    )
                    if self._ended:
                        return
                    self._messages.append(message)
                    self._num_bytes += len(message.data)
                    self._changed.notify_all()
        except BagError as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()


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
