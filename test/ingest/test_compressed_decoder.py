# SPDX-License-Identifier: Apache-2.0
"""JPEG and PNG become RGB; what is cut off, broken, huge or depth is one ImageError."""

from contextlib import suppress
import struct
import zlib

import cv2
from hypothesis import given, settings, strategies
import numpy as np
import pytest

from oxygen_ros.ingest import decode_compressed, ImageError

RGB = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8), (5, 5), 0)
BGR = np.ascontiguousarray(RGB[..., ::-1])
JPEG = cv2.imencode('.jpg', BGR)[1].tobytes()
PNG = cv2.imencode('.png', BGR)[1].tobytes()


def test_png_is_exact():
    np.testing.assert_array_equal(decode_compressed('png', PNG), RGB)


def test_jpeg_is_what_opencv_reads_in_rgb():
    expected = cv2.imdecode(np.frombuffer(JPEG, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    image = decode_compressed('jpeg', JPEG)
    np.testing.assert_array_equal(image, expected)
    assert not image.flags.writeable


@pytest.mark.parametrize(
    'image_format',
    ['jpeg', 'jpg', 'JPEG', '', 'png', 'rgb8; jpeg compressed bgr8', 'bgr8;jpeg compressed bgr8'],
)
def test_the_content_decides_and_not_what_the_format_says(image_format):
    assert decode_compressed(image_format, JPEG).shape == (24, 32, 3)
    np.testing.assert_array_equal(decode_compressed(image_format, PNG), RGB)


def test_grey_and_sixteen_bit_pictures_are_colour_too():
    grey = np.ascontiguousarray(RGB[..., 0])
    for pixels in (grey, grey.astype(np.uint16) * 256 + 32):
        png = cv2.imencode('.png', pixels)[1].tobytes()
        np.testing.assert_array_equal(decode_compressed('png', png), np.dstack([grey] * 3))


def test_what_follows_the_picture_is_no_fault():
    np.testing.assert_array_equal(
        decode_compressed('jpeg', JPEG + bytes(100)), decode_compressed('jpeg', JPEG)
    )
    np.testing.assert_array_equal(decode_compressed('png', PNG + bytes(100)), RGB)


def test_an_orientation_tag_does_not_turn_the_picture():
    exif = (
        b'Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01'
        b'\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00'
    )
    turned = JPEG[:2] + b'\xff\xe1' + struct.pack('>H', len(exif) + 2) + exif + JPEG[2:]
    np.testing.assert_array_equal(
        decode_compressed('jpeg', turned), decode_compressed('jpeg', JPEG)
    )


@pytest.mark.parametrize(
    'image_format',
    [
        '16UC1; compressedDepth png',
        '16UC1; compressedDepth',
        '32FC1; compressedDepth rvl',
        '16UC1; png compressed ',
        '32FC1',
    ],
)
def test_depth_is_refused_as_such(image_format):
    with pytest.raises(ImageError, match=r'^format: .*which is depth'):
        decode_compressed(image_format, PNG)


@pytest.mark.parametrize(
    ('data', 'message'),
    [
        (b'', 'a JPEG or PNG image, got no bytes'),
        (bytes(range(100)), 'a JPEG or PNG image, got 100 bytes that begin with 00 01 02'),
        (b'GIF89a' + bytes(20), 'a JPEG or PNG image'),
        (JPEG[:20], 'a whole JPEG image, got 20 bytes without any picture'),
        (JPEG[:2], 'a whole JPEG image'),
        (JPEG[:-30], 'without its end'),
        (PNG[:-1], 'a whole PNG image'),
        (PNG[:20], 'a whole PNG image'),
        (PNG[:60] + bytes([PNG[60] ^ 1]) + PNG[61:], 'a wrong checksum'),
        (None, 'a contiguous buffer of bytes'),
    ],
)
def test_broken_data_is_refused_with_what_came(data, message):
    with pytest.raises(ImageError, match=message):
        decode_compressed('jpeg', data)


def test_a_picture_cut_off_behind_a_whole_thumbnail_is_refused():
    thumbnail = b'\xff\xe1' + struct.pack('>H', len(JPEG) + 2) + JPEG
    with pytest.raises(ImageError, match='without its end'):
        decode_compressed('jpeg', JPEG[:2] + thumbnail + JPEG[2:-30])


def test_a_header_that_asks_for_gigabytes_is_refused_before_decoding():
    def chunk(kind, body):
        return (
            struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
        )

    header = chunk(b'IHDR', struct.pack('>IIBBBBB', 1 << 20, 1 << 20, 8, 2, 0, 0, 0))
    png = b'\x89PNG\r\n\x1a\n' + header + chunk(b'IDAT', zlib.compress(b'')) + chunk(b'IEND', b'')
    with pytest.raises(ImageError, match='1048576x1048576'):
        decode_compressed('png', png)
    size = JPEG.index(b'\xff\xc0') + 5
    jpeg = JPEG[:size] + struct.pack('>HH', 65535, 65535) + JPEG[size + 4 :]
    with pytest.raises(ImageError, match='65535x65535'):
        decode_compressed('jpeg', jpeg)


@given(
    data=strategies.binary(max_size=200),
    image_format=strategies.text(max_size=20),
    start=strategies.sampled_from([b'', b'\xff\xd8', b'\x89PNG\r\n\x1a\n', b'\xff\xd8\xff\xda']),
)
@settings(max_examples=300, deadline=None)
def test_random_bytes_give_an_image_or_an_image_error(data, image_format, start):
    try:
        decode_compressed(image_format, start + data)
    except ImageError as error:
        assert 'expected' in str(error) and 'got' in str(error)


@given(
    position=strategies.integers(0, len(JPEG) - 1),
    value=strategies.integers(0, 255),
    cut=strategies.integers(0, len(JPEG)),
    picture=strategies.sampled_from([JPEG, PNG]),
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_picture_gives_an_image_or_an_image_error(position, value, cut, picture):
    damaged = bytearray(picture)
    damaged[position % len(damaged)] = value
    for data in (damaged, damaged[:cut]):
        with suppress(ImageError):
            assert decode_compressed('jpeg', data).shape[2] == 3
