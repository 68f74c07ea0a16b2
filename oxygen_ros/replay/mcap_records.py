# SPDX-License-Identifier: Apache-2.0
"""The few MCAP records that reading needs; of a chunk that is cut off, its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import struct

import lz4.frame  # type: ignore[import-untyped]
import zstandard

MAGIC = b'\x89MCAP0\r\n'
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, DATA_END = 2, 3, 4, 5, 6, 7, 15

RECORD_HEAD = struct.Struct('<BQ')  # opcode, length of the body
MESSAGE_HEAD = struct.Struct('<HIQQ')  # channel, sequence, log time, publish time
_CHUNK_HEAD = struct.Struct('<QQQII')  # start, end, uncompressed size, CRC, length of a string

# What the decompressors and the parsing raise over damaged bytes.
BROKEN = (
    zstandard.ZstdError,
    RuntimeError,
    EOFError,
    ValueError,
    KeyError,
    struct.error,
    MemoryError,
    OverflowError,
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The head of a chunk record and its compressed records."""

    start_ns: int
    end_ns: int
    uncompressed_size: int
    crc: int
    compression: str
    data: bytes

    @classmethod
    def parse(cls, body: bytes) -> Chunk:
        """Parse a chunk's body, which may be cut off.

        :raises struct.error, ValueError: cut off within its head.
        """
        start_ns, end_ns, size, crc, length = _CHUNK_HEAD.unpack_from(body)
        begin = _CHUNK_HEAD.size + length
        compression = body[_CHUNK_HEAD.size : begin].decode('ascii')
        (num_bytes,) = struct.unpack_from('<Q', body, begin)
        return cls(
            start_ns, end_ns, size, crc, compression, body[begin + 8 : begin + 8 + num_bytes]
        )

    def decompress(self) -> bytes:
        """Return the records, or as many whole compressed blocks of them as there are."""
        if self.compression == 'zstd':
            return zstandard.ZstdDecompressor().decompressobj().decompress(self.data)
        if self.compression == 'lz4':
            return bytes(lz4.frame.LZ4FrameDecompressor().decompress(self.data))
        if self.compression:
            raise ValueError(f'compression {self.compression!r}')
        return self.data


def walk(buffer: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (opcode, begin, end) of each whole record; a last one that is cut off is left out."""
    position = 0
    while position + RECORD_HEAD.size <= len(buffer):
        opcode, length = RECORD_HEAD.unpack_from(buffer, position)
        begin = position + RECORD_HEAD.size
        position = begin + length
        if position > len(buffer):
            return
        yield opcode, begin, position


def read_text(buffer: bytes, position: int) -> tuple[str, int]:
    """Return a length-prefixed text and the position after it."""
    (length,) = struct.unpack_from('<I', buffer, position)
    end = position + 4 + length
    if end > len(buffer):
        raise ValueError('text beyond the end of its record')
    return buffer[position + 4 : end].decode(), end
