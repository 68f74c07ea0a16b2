# SPDX-License-Identifier: Apache-2.0
"""JPEG and PNG to RGB; what is cut off or absurdly large is refused before it is decoded."""

from __future__ import annotations

import struct
import zlib

import cv2
import numpy as np

from .errors import ImageError
from .image_decoder import as_bytes
from .pixel_formats import DEPTH_ENCODINGS, Pixels

MAX_PIXELS = 1 << 26  # 8192 x 8192; a header of a few bytes may ask for any amount of memory

_JPEG = b'\xff\xd8'
_PNG = b'\x89PNG\r\n\x1a\n'
_JPEG_ALONE = {0x01, *range(0xD0, 0xD9)}  # markers without a length
_JPEG_FRAME = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers that state the size
_JPEG_SCAN = 0xDA


def decode_compressed(image_format: str, data: object) -> Pixels:
    """Decode the fields of a sensor_msgs/CompressedImage.

    The content decides between JPEG and PNG, since drivers fill `format` in many ways ('jpg',
    'rgb8; jpeg compressed bgr8', or simply wrong). Orientation tags are ignored: the pixels are
    those that the camera was calibrated with.

    :param image_format: the message's `format`; refused only where it says that this is depth.
    :param data: any buffer of bytes.
    :return: [height, width, 3] uint8 RGB, read-only.
    :raises ImageError: names the field, what was expected and what came.
    """
    first_word = image_format.split(';')[0].strip()
    if 'compresseddepth' in image_format.lower() or first_word in DEPTH_ENCODINGS:
        raise ImageError('format', 'a colour image', f'{image_format[:64]!r}, which is depth')
    buffer = as_bytes(data)
    raw = buffer.tobytes()
    if raw.startswith(_JPEG):
        width, height = _jpeg_size(raw)
    elif raw.startswith(_PNG):
        width, height = _png_size(raw)
    else:
        what = f'{len(raw)} bytes that begin with {raw[:8].hex(" ")}' if raw else 'no bytes'
        raise ImageError('data', 'a JPEG or PNG image', what)
    if not 0 < width * height <= MAX_PIXELS:
        raise ImageError('data', f'1 to {MAX_PIXELS} pixels', f'{width}x{height}')
    try:
        decoded = cv2.imdecode(buffer, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise ImageError('data', f'a sound {width}x{height} image', error.err) from None
    if decoded is None:
        raise ImageError('data', f'a sound {width}x{height} image', 'one that does not decode')
    # Not by IMREAD_COLOR_RGB: the OpenCV 4.6 of Ubuntu 24.04 does not know it.
    image = np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), np.uint8)
    image.flags.writeable = False
    return image


def _jpeg_size(raw: bytes) -> tuple[int, int]:
    """Walk the segments up to the first scan; return (width, height)."""
    size = None
    position = 2
    while position + 4 <= len(raw) and raw[position] == 0xFF:
        marker = raw[position + 1]
        if marker == 0xFF:  # fill byte
            position += 1
            continue
        if marker in _JPEG_ALONE:
            position += 2
            continue
        if marker in _JPEG_FRAME and position + 9 <= len(raw):
            height, width = struct.unpack_from('>HH', raw, position + 5)
            size = (width, height)
        if marker == _JPEG_SCAN:
            break
        position += 2 + struct.unpack_from('>H', raw, position + 2)[0]
    else:
        raise ImageError('data', 'a whole JPEG image', f'{len(raw)} bytes without any picture')
    # The decoder would fill the missing rows with grey and say nothing. Searched after the header,
    # where a thumbnail has an end of its own.
    if raw.rfind(b'\xff\xd9', position) < 0:
        raise ImageError('data', 'a whole JPEG image', f'{len(raw)} bytes without its end')
    if size is None:
        raise ImageError('data', 'a JPEG image', 'one without a size')
    return size


def _png_size(raw: bytes) -> tuple[int, int]:
    """Check the chunks and their checksums; return (width, height)."""
    position = len(_PNG)
    size = None
    while position + 12 <= len(raw):
        length, kind = struct.unpack_from('>I4s', raw, position)
        end = position + 8 + length
        if end + 4 > len(raw):
            break
        if zlib.crc32(raw[position + 4 : end]) != struct.unpack_from('>I', raw, end)[0]:
            raise ImageError('data', 'a sound PNG image', f'a wrong checksum at byte {position}')
        if kind == b'IHDR' and length >= 8:
            size = struct.unpack_from('>II', raw, position + 8)
        if kind == b'IEND' and size is not None:
            return size
        position = end + 4
    raise ImageError('data', 'a whole PNG image', f'{len(raw)} bytes without its end')
