# SPDX-License-Identifier: Apache-2.0
"""MCAP files: by their index when that is sound, else by a scan of what there is.

The `mcap` library parses records and opens chunks. What is done here is to walk from record to
record past any damage, and to take messages out of a chunk, which must be fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
import struct
from typing import BinaryIO, NamedTuple

import lz4.frame  # type: ignore[import-untyped]
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, Schema
from mcap.stream_reader import get_chunk_data_stream
import zstandard

from .storage import BagError, BagMessage, BROKEN, in_order, MAX_NS, StoredTopic

MAGIC = b'\x89MCAP0\r\n'
_HEAD = struct.Struct('<BQ')  # of a record: opcode, length of its body
_MESSAGE_HEAD = struct.Struct('<HIQQ')  # channel, sequence, log time, publish time
_RUN_BYTES = 4 << 20  # messages outside of chunks are read in runs of this size
_DAMAGED = (McapError, zstandard.ZstdError, OSError, *BROKEN)


class _Segment(NamedTuple):
    """A stretch of the file that is read at once: a chunk, or a run of loose records."""

    begin: int
    end: int
    start_ns: int = 0
    end_ns: int = 0
    index_end: int = 0  # of the message indexes behind a chunk; 0: none


class McapStorage:
    """A `Storage` over one MCAP file.

    A chunk whose checksum is wrong is left out as a whole: nothing in it can be trusted.

    :raises BagError: not an MCAP file, or nothing in it can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_expected: int | None = None
        self.damage: dict[int, tuple[str, int]] = {}
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._segments: list[_Segment] = []
        self._counts: Counter[int] = Counter()  # messages by channel
        self._size = path.stat().st_size
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
        return in_order(
            (segment.start_ns, self._sorted(segment, topics, start_ns))
            for segment in self._segments
            if segment.end_ns >= start_ns
        )

    def _sorted(
        self, segment: _Segment, topics: frozenset[str], start_ns: int
    ) -> Iterator[BagMessage]:
        found = []
        for number, stamp_ns, data in self._read(segment):
            channel = self._channels[number]
            if stamp_ns >= start_ns and channel.topic in topics:
                schema = self._schemas.get(channel.schema_id)
                msgtype = schema.name if schema else ''
                found.append(BagMessage(stamp_ns, channel.topic, msgtype, data))
        found.sort(key=lambda message: message.stamp_ns)
        yield from found

    def _describe(self, number: int) -> StoredTopic:
        channel = self._channels[number]
        schema = self._schemas.get(channel.schema_id) or Schema(0, b'', '', '')
        return StoredTopic(
            channel.topic,
            schema.name,
            channel.message_encoding,
            self._counts[number],
            schema.data.decode(errors='replace'),
            schema.encoding,
        )

    def _read_index(self) -> bool:
        """Take topics, counts and chunks from the summary; False: there is none to rely on."""
        try:
            summary = make_reader(self._file).get_summary()
        except _DAMAGED:  # OSError: it seeks to before the start of a tiny file
            return False
        if summary is None or summary.statistics is None:
            return False
        num_messages = summary.statistics.message_count
        if num_messages and not (summary.chunk_indexes and summary.channels):
            return False
        segments = []
        for index in summary.chunk_indexes:
            end = index.chunk_start_offset + index.chunk_length
            index_end = end + index.message_index_length
            if index_end > self._size:
                return False
            times = index.message_start_time, index.message_end_time
            if index.message_end_time:  # 0: holds no message
                segments.append(_Segment(index.chunk_start_offset, end, *times, index_end))
        self._segments = segments
        self._schemas, self._channels = summary.schemas, summary.channels
        self._counts.update(summary.statistics.channel_message_counts)
        self.num_expected = num_messages
        return True

    def _scan(self) -> None:
        """Walk the file record by record until it ends or makes no sense."""
        segments: list[_Segment] = []
        run: _Segment | None = None  # the last one, while it can grow
        position, is_ended = len(MAGIC), False
        for opcode, begin, end in _walk(self._file, position, self._size):
            position = begin - _HEAD.size
            is_ended = opcode in (Opcode.DATA_END, Opcode.FOOTER)
            if is_ended:
                break
            if opcode == Opcode.CHUNK:
                segments.append(_Segment(position, min(end, self._size)))
                run = None
            if end > self._size:
                break
            if opcode == Opcode.MESSAGE:
                if run is not None and end - run.begin <= _RUN_BYTES:
                    segments[-1] = run = run._replace(end=end)
                else:
                    segments.append(run := _Segment(position, end))
            elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._file.seek(begin)
                self._define(opcode, self._file.read(end - begin))
            position = end
        for segment in segments:
            found = [(channel, stamp_ns) for channel, stamp_ns, _ in self._read(segment)]
            if found:
                self._counts.update(channel for channel, _ in found)
                stamps = [stamp_ns for _, stamp_ns in found]
                segment = segment._replace(start_ns=min(stamps), end_ns=max(stamps))
                self._segments.append(segment)
        if not is_ended:
            self.damage.setdefault(position, (f'cut off at byte {position} of {self._size}', 0))
        if self.damage and not self._segments:
            problems = '; '.join(text for text, _ in self.damage.values())
            raise BagError(self.path, 'an MCAP file with messages', problems)

    def _define(self, opcode: int, body: bytes) -> None:
        stream = ReadDataStream(BytesIO(body))
        try:
            if opcode == Opcode.SCHEMA:
                schema = Schema.read(stream)
                self._schemas[schema.id] = schema
            else:
                channel = Channel.read(stream)
                self._channels[channel.id] = channel
        except _DAMAGED as error:
            self.damage.setdefault(-1, (f'a definition that cannot be read: {error}', 0))

    def _read(self, segment: _Segment) -> Iterator[tuple[int, int, bytes]]:
        """Yield (channel, log time, data) of each message; what is broken goes to `damage`."""
        place = f'chunk at byte {segment.begin}'
        try:
            records = self._records(segment)
        except _DAMAGED as error:
            lost = self._num_indexed(segment)
            self.damage.setdefault(segment.begin, (f'{place}: {error}', lost))
            return
        num_messages = 0
        for opcode, begin, end in _walk(BytesIO(records), 0, len(records)):
            if end > len(records):
                break
            if opcode == Opcode.MESSAGE and end - begin >= _MESSAGE_HEAD.size:
                channel, _, stamp_ns, _ = _MESSAGE_HEAD.unpack_from(records, begin)
                if channel in self._channels:
                    num_messages += 1
                    yield channel, stamp_ns, records[begin + _MESSAGE_HEAD.size : end]
            elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._define(opcode, records[begin:end])
        lost = self._num_indexed(segment) - num_messages
        if lost > 0:  # a chunk without a checksum
            self.damage.setdefault(segment.begin, (f'{place}: messages missing', lost))

    def _records(self, segment: _Segment) -> bytes:
        """Return the records of a segment, of a chunk that is cut off those before the cut."""
        self._file.seek(segment.begin)
        raw = self._file.read(segment.end - segment.begin)
        opcode, length = _HEAD.unpack_from(raw)
        if opcode == Opcode.MESSAGE:
            return raw
        if opcode != Opcode.CHUNK:
            raise ValueError('no chunk where the index says so')
        chunk = Chunk.read(ReadDataStream(BytesIO(raw[_HEAD.size :])))
        if _HEAD.size + length > len(raw):  # the end of the file: no checksum can be right
            self.damage.setdefault(segment.begin, (f'chunk at byte {segment.begin}: cut off', 0))
            return _beginning(chunk)
        stream, num_bytes = get_chunk_data_stream(chunk, validate_crc=True)
        if num_bytes != chunk.uncompressed_size:
            raise ValueError(f'{num_bytes} of {chunk.uncompressed_size} bytes')
        return stream.read(num_bytes)

    def _num_indexed(self, segment: _Segment) -> int:
        """Return how many messages the indexes behind a chunk name."""
        return sum(
            (end - begin - 6) // 16
            for opcode, begin, end in _walk(self._file, segment.end, segment.index_end)
            if opcode == Opcode.MESSAGE_INDEX and end <= segment.index_end
        )


def _walk(file: BinaryIO, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, begin and end of the body of each record; the last may end beyond `end`."""
    while begin + _HEAD.size <= end:
        file.seek(begin)
        opcode, length = _HEAD.unpack(file.read(_HEAD.size))
        begin += _HEAD.size
        yield opcode, begin, begin + length
        begin += length


def _beginning(chunk: Chunk) -> bytes:
    """Return the records in as many whole compressed blocks of a chunk as there are."""
    if chunk.compression == 'zstd':
        return zstandard.ZstdDecompressor().decompressobj().decompress(chunk.data)
    if chunk.compression == 'lz4':
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(chunk.data))
    return chunk.data
