# SPDX-License-Identifier: Apache-2.0
"""MCAP files: by their index when that is sound, else by a scan of what there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
import heapq
from pathlib import Path
import struct
import zlib

from mcap.exceptions import McapError
from mcap.reader import make_reader

from .mcap_records import (
    BROKEN,
    CHANNEL,
    CHUNK,
    Chunk,
    DATA_END,
    FOOTER,
    MAGIC,
    MESSAGE,
    MESSAGE_HEAD,
    MESSAGE_INDEX,
    read_text,
    RECORD_HEAD,
    SCHEMA,
    walk,
)
from .storage import BagError, BagMessage, MAX_NS, StoredTopic

LOOSE_BYTES = 4 << 20  # messages outside of chunks are read in runs of this size


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the file that is read at once: a chunk, or a run of loose records."""

    offset: int
    length: int
    start_ns: int
    end_ns: int
    is_chunk: bool = True
    index_length: int = 0  # of the message indexes behind a chunk


class McapStorage:
    """A `Storage` over one MCAP file.

    A chunk whose checksum is wrong is left out as a whole: nothing in it can be trusted.

    :raises BagError: not an MCAP file, or nothing in it can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_expected: int | None = None
        self.damage: dict[int, tuple[str, int]] = {}
        self._schemas: dict[int, tuple[str, str, str]] = {}  # id: name, format, definition
        self._channels: dict[int, tuple[int, str, str]] = {}  # id: schema, topic, serialisation
        self._segments: list[Segment] = []
        self._counts: Counter[int] = Counter()
        self._file = path.open('rb')
        try:
            if not self._read_index():
                self._scan()
        except BaseException:
            self._file.close()
            raise
        self._segments.sort(key=lambda segment: segment.start_ns)
        self.start_ns = min((segment.start_ns for segment in self._segments), default=MAX_NS)
        self.end_ns = max((segment.end_ns for segment in self._segments), default=0)
        self.topics = tuple(self._describe(channel) for channel in sorted(self._channels))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def messages(self, topics: frozenset[str], start_ns: int) -> Iterator[BagMessage]:
        """Yield in order of time what is recorded at `start_ns` or later, past any damage."""
        waiting: list[tuple[int, int, BagMessage]] = []  # chunks may overlap in time
        number = 0
        for segment in self._segments:
            while waiting and waiting[0][0] < segment.start_ns:
                yield heapq.heappop(waiting)[2]
            if segment.end_ns < start_ns:
                continue
            for channel, stamp_ns, data in self._read_messages(segment):
                schema, topic, _ = self._channels[channel]
                if stamp_ns >= start_ns and topic in topics:
                    number += 1
                    msgtype = self._schemas.get(schema, ('',))[0]
                    message = BagMessage(stamp_ns, topic, msgtype, data)
                    heapq.heappush(waiting, (stamp_ns, number, message))
        while waiting:
            yield heapq.heappop(waiting)[2]

    def _describe(self, channel: int) -> StoredTopic:
        schema, topic, serialization = self._channels[channel]
        name, definition_format, definition = self._schemas.get(schema, ('', '', ''))
        return StoredTopic(
            topic, name, serialization, self._counts[channel], definition, definition_format
        )

    def _read_index(self) -> bool:
        """Take topics, counts and chunks from the summary; False: there is none to rely on."""
        try:
            summary = make_reader(self._file).get_summary()
        except (McapError, OSError, *BROKEN):  # it seeks to before the start of a tiny file
            return False
        if summary is None or summary.statistics is None:
            return False
        statistics = summary.statistics
        if statistics.message_count and not (summary.chunk_indexes and summary.channels):
            return False
        size = self.path.stat().st_size
        if any(
            index.chunk_start_offset + index.chunk_length + index.message_index_length > size
            for index in summary.chunk_indexes
        ):
            return False
        for schema in summary.schemas.values():
            definition = schema.data.decode(errors='replace')
            self._schemas[schema.id] = (schema.name, schema.encoding, definition)
        for channel in summary.channels.values():
            self._channels[channel.id] = (
                channel.schema_id,
                channel.topic,
                channel.message_encoding,
            )
        self._segments = [
            Segment(
                index.chunk_start_offset,
                index.chunk_length,
                index.message_start_time,
                index.message_end_time,
                index_length=index.message_index_length,
            )
            for index in summary.chunk_indexes
            if index.message_end_time
        ]  # 0: holds no message
        self._counts.update(statistics.channel_message_counts)
        self.num_expected = statistics.message_count
        return True

    def _scan(self) -> None:
        """Walk the file record by record until it ends or makes no sense."""
        size = self.path.stat().st_size
        self._file.seek(0)
        if self._file.read(len(MAGIC)) != MAGIC:
            raise BagError(self.path, 'an MCAP file', 'another beginning')
        position, loose_from = len(MAGIC), -1
        ended = False
        while position + RECORD_HEAD.size <= size:
            self._file.seek(position)
            opcode, length = RECORD_HEAD.unpack(self._file.read(RECORD_HEAD.size))
            end = position + RECORD_HEAD.size + length
            if opcode == MESSAGE and loose_from < 0 and end <= size:
                loose_from = position
            if loose_from >= 0 and (
                opcode != MESSAGE or end > size or end - loose_from > LOOSE_BYTES
            ):
                stop = end if opcode == MESSAGE and end <= size else position
                self._take_segment(Segment(loose_from, stop - loose_from, 0, 0, is_chunk=False))
                loose_from = -1
            if opcode == CHUNK:
                self._take_segment(Segment(position, min(end, size) - position, 0, 0))
            elif opcode in (SCHEMA, CHANNEL) and end <= size:
                self._take_definition(opcode, self._file.read(length))
            ended = opcode in (DATA_END, FOOTER)
            if ended or end > size:
                break
            position = end
        if loose_from >= 0:
            self._take_segment(Segment(loose_from, position - loose_from, 0, 0, is_chunk=False))
        if not ended:
            self.damage.setdefault(position, (f'cut off at byte {position} of {size}', 0))
        if self.damage and not self._segments:
            raise BagError(
                self.path,
                'an MCAP file with messages',
                '; '.join(text for text, _ in self.damage.values()),
            )

    def _take_segment(self, segment: Segment) -> None:
        stamps = []
        for channel, stamp_ns, _ in self._read_messages(segment):
            self._counts[channel] += 1
            stamps.append(stamp_ns)
        if stamps:
            self._segments.append(
                Segment(segment.offset, segment.length, min(stamps), max(stamps), segment.is_chunk)
            )

    def _take_definition(self, opcode: int, body: bytes) -> None:
        try:
            if opcode == SCHEMA:
                name, position = read_text(body, 2)
                definition_format, position = read_text(body, position)
                definition, _ = read_text(body, position)
                (schema,) = struct.unpack_from('<H', body)
                self._schemas[schema] = (name, definition_format, definition)
            else:
                channel, schema = struct.unpack_from('<HH', body)
                topic, position = read_text(body, 4)
                serialization, _ = read_text(body, position)
                self._channels[channel] = (schema, topic, serialization)
        except BROKEN as error:
            self.damage.setdefault(-1, (f'a definition that cannot be read: {error}', 0))

    def _read_messages(self, segment: Segment) -> Iterator[tuple[int, int, bytes]]:
        """Yield (channel, log time, data) of a segment; what is broken is noted in `damage`."""
        try:
            records = self._read_records(segment)
        except (OSError, *BROKEN) as error:
            lost = self._num_indexed(segment)
            self.damage.setdefault(
                segment.offset, (f'chunk at byte {segment.offset}: {error}', lost)
            )
            return
        num_messages = 0
        for opcode, begin, end in walk(records):
            if opcode == MESSAGE and end - begin >= MESSAGE_HEAD.size:
                channel, _, stamp_ns, _ = MESSAGE_HEAD.unpack_from(records, begin)
                if channel in self._channels:
                    num_messages += 1
                    yield channel, stamp_ns, records[begin + MESSAGE_HEAD.size : end]
            elif opcode in (SCHEMA, CHANNEL):
                self._take_definition(opcode, records[begin:end])
        lost = self._num_indexed(segment) - num_messages
        if lost > 0:  # a chunk without a checksum
            self.damage.setdefault(
                segment.offset, (f'chunk at byte {segment.offset}: messages missing', lost)
            )

    def _read_records(self, segment: Segment) -> bytes:
        self._file.seek(segment.offset)
        raw = self._file.read(segment.length)
        if not segment.is_chunk:
            return raw
        opcode, length = RECORD_HEAD.unpack_from(raw)
        if opcode != CHUNK:
            raise ValueError('no chunk where the index says so')
        chunk = Chunk.parse(raw[RECORD_HEAD.size :])
        records = chunk.decompress()
        if RECORD_HEAD.size + length > len(raw):  # the end of the file: no checksum can be right
            self.damage.setdefault(segment.offset, (f'chunk at byte {segment.offset}: cut off', 0))
        elif len(records) != chunk.uncompressed_size:
            raise ValueError(f'{len(records)} of {chunk.uncompressed_size} bytes')
        elif chunk.crc and zlib.crc32(records) != chunk.crc:
            raise ValueError('wrong checksum')
        return records

    def _num_indexed(self, segment: Segment) -> int:
        """Return how many messages the indexes behind a chunk name."""
        if not segment.index_length:
            return 0
        self._file.seek(segment.offset + segment.length)
        indexes = self._file.read(segment.index_length)
        return sum(
            (end - begin - 6) // 16
            for opcode, begin, end in walk(indexes)
            if opcode == MESSAGE_INDEX
        )
