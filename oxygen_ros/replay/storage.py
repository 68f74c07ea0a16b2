# SPDX-License-Identifier: Apache-2.0
"""What every storage of a recording gives, whatever its format: topics, messages, damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import heapq
from itertools import chain
import math
import struct
from typing import NamedTuple, Protocol

from ..errors import OxygenError

MAX_NS = (1 << 63) - 1

# What parsers and decompressors raise over damaged bytes, besides errors of their own.
BROKEN = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    struct.error,
    ValueError,
)


class BagError(OxygenError):
    """A recording cannot be read; the text names the path, what was expected and what came."""

    def __init__(self, path: object, expected: str, got: object) -> None:
        super().__init__(f'{path}: expected {expected}, got {got}')


class BagMessage(NamedTuple):
    """One recorded message, still serialised."""

    stamp_ns: int  # when it was recorded (ROS time)
    topic: str
    msgtype: str
    data: bytes  # CDR, encapsulation header included


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic as one storage file describes it."""

    name: str
    msgtype: str
    serialization: str
    count: int
    definition: str = ''  # text of the type's definition, where the file holds it
    definition_format: str = ''  # ros2msg, ros2idl or empty


class Storage(Protocol):
    """One open storage file. One thread at a time."""

    topics: tuple[StoredTopic, ...]
    start_ns: int  # first and last message; MAX_NS and 0 without any
    end_ns: int
    num_expected: int | None  # messages that the file says it holds; None: it cannot say
    damage: dict[int, tuple[str, int]]  # by place in the file: what is wrong, messages lost

    def messages(self, topics: frozenset[str], start_ns: int) -> Iterator[BagMessage]:
        """Yield in order of time what is recorded at `start_ns` or later, past any damage."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def in_order(parts: Iterable[tuple[int, Iterator[BagMessage]]]) -> Iterator[BagMessage]:
    """Merge parts of a recording by time; only those that overlap in time are held at once.

    :param parts: when each begins, and its messages in order of time; sorted by their beginning.
    """
    running: list[tuple[int, int, BagMessage, Iterator[BagMessage]]] = []
    end: tuple[float, Iterator[BagMessage]] = (math.inf, iter(()))
    for number, (start_ns, messages) in enumerate(chain(parts, (end,))):
        while running and running[0][0] < start_ns:
            _, part, message, rest = running[0]
            yield message
            following = next(rest, None)
            if following is None:
                heapq.heappop(running)
            else:
                heapq.heapreplace(running, (following.stamp_ns, part, following, rest))
        first = next(messages, None)
        if first is not None:
            heapq.heappush(running, (first.stamp_ns, number, first, messages))
