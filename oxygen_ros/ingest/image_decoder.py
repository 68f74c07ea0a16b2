# SPDX-License-Identifier: Apache-2.0
"""Raw image messages to RGB: takes fields, knows no message class."""

from __future__ import annotations

import cv2
import numpy as np

from .errors import ImageError
from .pixel_formats import DEPTH_ENCODINGS, PIXEL_FORMATS, PixelFormat, Pixels


def decode_image(
    encoding: str, height: int, width: int, step: int, is_bigendian: bool | int, data: object
) -> Pixels:
    """Decode the fields of a sensor_msgs/Image.

    Exact wherever the format holds RGB or grey (of 16 bits the high byte); YUV and Bayer are
    converted and interpolated by OpenCV.

    :param height: pixels; `width` likewise.
    :param step: bytes from one row to the next, padding included.
    :param is_bigendian: how 16-bit values are stored.
    :param data: any buffer of bytes (array.array, bytes, ndarray).
    :return: [height, width, 3] uint8 RGB, read-only; tight rgb8 is a view of `data`, all else a
        copy.
    :raises ImageError: names the field, what was expected and what came.
    """
    pixel_format = _pixel_format(encoding)
    _check_size(encoding, pixel_format, height, width)
    row_bytes = width * pixel_format.bytes_per_pixel
    if step < row_bytes:
        raise ImageError('step', f'at least {row_bytes} bytes ({width} pixels {encoding})', step)
    buffer = as_bytes(data)
    num_rows = pixel_format.num_rows(height)
    if buffer.size != num_rows * step:
        raise ImageError(
            'data', f'{num_rows * step} bytes ({num_rows} rows of {step})', buffer.size
        )
    rows = buffer.reshape(num_rows, step)[:, :row_bytes]
    try:
        image = pixel_format.convert(rows, width, bool(is_bigendian))
    except cv2.error as error:
        raise ImageError('data', f'a {width}x{height} image of {encoding}', error.err) from None
    image.flags.writeable = False
    return image


def as_bytes(data: object) -> Pixels:
    """Return a flat read-only view of a buffer.

    :raises ImageError: not a buffer, or not contiguous.
    """
    try:
        view = memoryview(data)  # type: ignore[arg-type]
        buffer = np.frombuffer(view, np.uint8) if view.nbytes else np.zeros(0, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise ImageError(
            'data', 'a contiguous buffer of bytes', f'{type(data).__name__}: {error}'
        ) from None
    buffer.flags.writeable = False
    return buffer


def _pixel_format(encoding: str) -> PixelFormat:
    pixel_format = PIXEL_FORMATS.get(encoding)
    if pixel_format is not None:
        return pixel_format
    if encoding in DEPTH_ENCODINGS:
        raise ImageError('encoding', 'a colour image', f'{encoding}, which is depth')
    raise ImageError('encoding', f'one of {", ".join(PIXEL_FORMATS)}', repr(encoding[:64]))


def _check_size(encoding: str, pixel_format: PixelFormat, height: int, width: int) -> None:
    for field, value, multiple in (
        ('height', height, pixel_format.height_step),
        ('width', width, pixel_format.width_step),
    ):
        if value < pixel_format.min_size:
            raise ImageError(field, f'at least {pixel_format.min_size} pixels', value)
        if value % multiple:
            raise ImageError(field, f'a multiple of {multiple} pixels for {encoding}', value)
