# SPDX-License-Identifier: Apache-2.0
"""Recordings made by rosbag2: whole, split, compressed, without metadata, damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import zstandard

from .container import Container, find_files, open_storage, ZSTD_MAGIC
from .message_types import MessageTypes
from .storage import BagError, BagMessage, in_order, MAX_NS, Storage

__all__ = ['Bag', 'BagError', 'BagMessage', 'Topic', 'open_bag']

MAX_MESSAGE_BYTES = 1 << 30  # of one message that was compressed by itself


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a recording."""

    name: str
    msgtype: str
    count: int  # messages that can be read


class Bag:
    """An open recording; close it, or use it in a `with` statement. One thread at a time.

    Damage that shows only while reading (a chunk with a wrong checksum) is stepped over and
    appears in `damage` and `num_lost` from then on.
    """

    def __init__(
        self,
        path: Path,
        storages: list[Storage],
        container: Container,
        stack: ExitStack,
        remap: Mapping[str, str],
    ) -> None:
        self.path = path
        self._remap = remap
        self.notes = list(container.notes)  # odd, but nothing is lost by it
        self._storages = sorted(storages, key=lambda storage: storage.start_ns)
        self._damage = container.damage
        self._num_expected = container.num_expected
        self._stack = stack
        self._undecodable = 0
        stored = [topic for storage in self._storages for topic in storage.topics]
        self._types = MessageTypes(stored)
        counts: Counter[tuple[str, str]] = Counter()
        others: set[str] = set()
        for topic in stored:
            form = container.serialization.get(topic.name, topic.serialization)
            if form == topic.serialization == 'cdr':
                counts[topic.name, topic.msgtype] += topic.count
            else:
                others.add(form)
        if others:
            left_out = ', '.join(sorted(others))
            if not counts:
                raise BagError(path, 'messages serialised as cdr', left_out)
            self.notes.append(f'topics left out: serialised as {left_out}')
        names = {name: remap.get(name, name) for name, _ in counts}
        absent = [name for name in remap if name not in names]
        if absent:
            known = ', '.join(sorted(names)) or 'no topics'
            raise BagError(path, f'a topic {absent[0]} to take for another', known)
        self._recorded_as = {new: name for name, new in names.items()}
        if len(self._recorded_as) < len(names):
            raise BagError(path, 'a remapping that keeps topics apart', dict(remap))
        self.topics = tuple(
            sorted(
                (Topic(names[name], msgtype, count) for (name, msgtype), count in counts.items()),
                key=lambda topic: (topic.name, topic.msgtype),
            )
        )

    @property
    def num_messages(self) -> int:
        """Messages that can be read, as far as known."""
        return sum(topic.count for topic in self.topics) - self._lost_while_reading

    @property
    def num_lost(self) -> int | None:
        """Messages that were recorded and cannot be read; None: nothing says how many."""
        expected = self._num_expected
        if expected is None and not self._damage:  # no metadata, but the files know
            stated = [storage.num_expected for storage in self._storages]
            expected = None if None in stated else sum(filter(None, stated))
        if expected is not None:
            return max(0, expected - self.num_messages)
        return None if self.damage else 0

    @property
    def damage(self) -> tuple[str, ...]:
        """What is wrong with the recording, a line each; empty: nothing found."""
        found = [text for storage in self._storages for text, _ in storage.damage.values()]
        if self._undecodable:
            found.append(f'{self._undecodable} messages that do not decompress')
        return (*self._damage, *found)

    @property
    def start_ns(self) -> int:
        """When the first message was recorded (ROS time); 0 without messages."""
        start_ns = min((storage.start_ns for storage in self._storages), default=MAX_NS)
        return 0 if start_ns == MAX_NS else start_ns

    @property
    def end_ns(self) -> int:
        """When the last message was recorded (ROS time); 0 without messages."""
        return max((storage.end_ns for storage in self._storages), default=0)

    @property
    def duration_s(self) -> float:
        """From the first message to the last."""
        return (self.end_ns - self.start_ns) * 1e-9

    def messages(
        self, topics: Collection[str] | None = None, start_ns: int = 0
    ) -> Iterator[BagMessage]:
        """Yield messages in order of time.

        :param topics: only these; None: all.
        :param start_ns: only what was recorded then or later (ROS time).
        """
        wanted = frozenset(
            recorded
            for name, recorded in self._recorded_as.items()
            if topics is None or name in topics
        )
        streams = [
            (storage.start_ns, storage.messages(wanted, start_ns)) for storage in self._storages
        ]
        for message in in_order(streams):
            if message.data.startswith(ZSTD_MAGIC):  # no CDR message begins so
                whole = self._decompress(message)
                if whole is None:
                    continue
                message = whole
            name = self._remap.get(message.topic)
            yield message if name is None else message._replace(topic=name)

    def newest_before(self, topic: str, stamp_ns: int) -> BagMessage | None:
        """Return a topic's last message before a time (ROS time); None: there is none."""
        newest = None
        for message in self.messages({topic}):
            if message.stamp_ns >= stamp_ns:
                break
            newest = message
        return newest

    def deserialize(self, message: BagMessage) -> Any:
        """Return a dataclass with the message's fields; arrays are ndarrays.

        :raises BagError: the type is unknown, or the bytes are not one of it.
        """
        return self._types.deserialize(message)

    def summary(self) -> str:
        """Return one line: messages, seconds, and what was lost."""
        text = f'{self.path}: {self.num_messages} messages in {self.duration_s:.1f} s'
        if not self.num_messages:
            text = f'{self.path}: no messages'
        if self.num_lost != 0:
            text += f', {"an unknown number" if self.num_lost is None else self.num_lost} lost'
        remarks = (*self.notes, *self.damage)
        return text + (f' ({"; ".join(remarks)})' if remarks else '')

    def close(self) -> None:
        """Close all files and remove decompressed copies."""
        self._stack.close()

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def _lost_while_reading(self) -> int:
        lost = self._undecodable
        for storage in self._storages:
            if storage.num_expected is not None:
                lost += sum(num for _, num in storage.damage.values())
        return lost

    def _decompress(self, message: BagMessage) -> BagMessage | None:
        try:
            data = zstandard.ZstdDecompressor().decompress(
                message.data, max_output_size=MAX_MESSAGE_BYTES
            )
        except zstandard.ZstdError:
            self._undecodable += 1
            return None
        return message._replace(data=data)


def open_bag(path: str | Path, remap: Mapping[str, str] | None = None) -> Bag:
    """Open a recording: a folder or a single storage file, MCAP or SQLite, compressed or not.

    A file that is damaged gives what lies before (or around) the damage.

    :param remap: other names for topics, by the recorded one.
    :raises BagError: it is not there, is not a recording, or nothing of it can be read.
    """
    path = Path(path)
    stack = ExitStack()
    storages: list[Storage] = []
    failures: list[BagError] = []
    try:
        container = find_files(path)
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix='oxygen_bag_')))
        for file in container.files:
            try:
                storage, damage = open_storage(file, scratch)
            except BagError as error:
                failures.append(error)
                continue
            stack.callback(storage.close)
            storages.append(storage)
            if damage:
                container.damage.append(damage)
        if not storages:
            raise failures[0]
        container.damage.extend(str(failure) for failure in failures)
        return Bag(path, storages, container, stack, remap or {})
    except BaseException as error:
        stack.close()
        if isinstance(error, OSError):
            raise BagError(path, 'a readable recording', error.strerror or error) from None
        raise
