# SPDX-License-Identifier: Apache-2.0
"""The pixel formats of sensor_msgs/Image that are colour (or grey), and how each becomes RGB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

# What a message's `encoding` says when its values are distances, not colours.
DEPTH_ENCODINGS = ('16UC1', '32FC1', '64FC1', '16SC1', '32SC1')


@dataclass(frozen=True, slots=True)
class PixelFormat:
    """How a row is laid out, and the conversion.

    `convert` takes rows [num_rows, width * bytes_per_pixel] (their step may be longer), the width
    and whether 16-bit values are big-endian; it returns [height, width, 3] RGB.
    """

    bytes_per_pixel: int  # within a row
    convert: Callable[[Pixels, int, bool], Pixels]
    width_step: int = 1  # the width is a multiple of this
    height_step: int = 1
    min_size: int = 1  # smallest width and height
    chroma_rows: bool = False  # half as many rows of chroma follow the image's own

    def num_rows(self, height: int) -> int:
        """Return how many rows of `step` bytes the data has."""
        return height * 3 // 2 if self.chroma_rows else height


def _rgb(rows: Pixels, width: int, big_endian: bool) -> Pixels:
    return np.ascontiguousarray(rows.reshape(len(rows), width, 3))


def _grey_high_byte(rows: Pixels, width: int, big_endian: bool) -> Pixels:
    high = rows.reshape(len(rows), width, 2)[..., 0 if big_endian else 1]
    return _cv(cv2.cvtColor(np.ascontiguousarray(high), cv2.COLOR_GRAY2RGB))


def _cv(image: object) -> Pixels:
    return np.asarray(image, np.uint8)


def _packed(channels: int, code: int) -> Callable[[Pixels, int, bool], Pixels]:
    def convert(rows: Pixels, width: int, big_endian: bool) -> Pixels:
        shape = (len(rows), width) if channels == 1 else (len(rows), width, channels)
        return _cv(cv2.cvtColor(rows.reshape(shape), code))

    return convert


_BGR = PixelFormat(3, _packed(3, cv2.COLOR_BGR2RGB))
_BGRA = PixelFormat(4, _packed(4, cv2.COLOR_BGRA2RGB))
_MONO = PixelFormat(1, _packed(1, cv2.COLOR_GRAY2RGB))
_UYVY = PixelFormat(2, _packed(2, cv2.COLOR_YUV2RGB_UYVY), width_step=2)
_YUYV = PixelFormat(2, _packed(2, cv2.COLOR_YUV2RGB_YUY2), width_step=2)


def _bayer(code: int) -> PixelFormat:
    # Below 3x3 there is nothing to interpolate from, and OpenCV answers with black.
    return PixelFormat(1, _packed(1, code), min_size=3)


def _two_planes(code: int) -> PixelFormat:
    return PixelFormat(1, _packed(1, code), width_step=2, height_step=2, chroma_rows=True)


# Names as in sensor_msgs/image_encodings.hpp. The 8UC ones say nothing about the order of colours;
# cv_bridge and the drivers that use them mean OpenCV's, blue first. YUV is BT.601 in video range
# (16 to 235), as cameras deliver it.
PIXEL_FORMATS: dict[str, PixelFormat] = {
    'rgb8': PixelFormat(3, _rgb),
    'bgr8': _BGR,
    'rgba8': PixelFormat(4, _packed(4, cv2.COLOR_RGBA2RGB)),
    'bgra8': _BGRA,
    'mono8': _MONO,
    'mono16': PixelFormat(2, _grey_high_byte),
    '8UC1': _MONO,
    '8UC3': _BGR,
    '8UC4': _BGRA,
    'yuv422': _UYVY,
    'uyvy': _UYVY,
    'yuv422_yuy2': _YUYV,
    'yuyv': _YUYV,
    'nv12': _two_planes(cv2.COLOR_YUV2RGB_NV12),
    'nv21': _two_planes(cv2.COLOR_YUV2RGB_NV21),
    'bayer_rggb8': _bayer(cv2.COLOR_BayerRGGB2RGB),
    'bayer_bggr8': _bayer(cv2.COLOR_BayerBGGR2RGB),
    'bayer_gbrg8': _bayer(cv2.COLOR_BayerGBRG2RGB),
    'bayer_grbg8': _bayer(cv2.COLOR_BayerGRBG2RGB),
}
