# SPDX-License-Identifier: Apache-2.0
"""Raw images become RGB exactly, whatever their layout; anything else is one ImageError."""

from array import array
from contextlib import suppress

import cv2
from hypothesis import given, settings, strategies
import numpy as np
import pytest

from oxygen_ros.ingest import decode_image, ImageError
from oxygen_ros.ingest.pixel_formats import PIXEL_FORMATS

HEIGHT, WIDTH = 6, 8


@pytest.fixture
def rgb():
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def decode(encoding, pixels, is_bigendian=0):
    """Decode an array whose rows are tight."""
    step = pixels[0].nbytes
    return decode_image(encoding, HEIGHT, WIDTH, step, is_bigendian, pixels.tobytes())


def with_alpha(pixels):
    return np.dstack([pixels, np.full(pixels.shape[:2], 7, np.uint8)])


@pytest.mark.parametrize(
    ('encoding', 'arrange'),
    [
        ('rgb8', lambda rgb: rgb),
        ('bgr8', lambda rgb: rgb[..., ::-1]),
        ('8UC3', lambda rgb: rgb[..., ::-1]),
        ('rgba8', with_alpha),
        ('bgra8', lambda rgb: with_alpha(rgb[..., ::-1])),
        ('8UC4', lambda rgb: with_alpha(rgb[..., ::-1])),
    ],
)
def test_colours_come_out_bit_equal(rgb, encoding, arrange):
    image = decode(encoding, arrange(rgb))
    assert image.dtype == np.uint8 and image.flags.c_contiguous
    np.testing.assert_array_equal(image, rgb)


@pytest.mark.parametrize('encoding', ['mono8', '8UC1'])
def test_grey_is_three_equal_channels(rgb, encoding):
    grey = np.ascontiguousarray(rgb[..., 0])
    np.testing.assert_array_equal(decode(encoding, grey), np.dstack([grey] * 3))


@pytest.mark.parametrize(('is_bigendian', 'dtype'), [(0, '<u2'), (1, '>u2')])
def test_sixteen_bit_grey_keeps_its_high_byte_in_either_byte_order(rgb, is_bigendian, dtype):
    grey = rgb[..., 0].astype(dtype) * 256 + rgb[..., 1]
    image = decode('mono16', grey.astype(dtype), is_bigendian)
    np.testing.assert_array_equal(image, np.dstack([rgb[..., 0]] * 3))


@pytest.mark.parametrize(
    ('encoding', 'order'),
    [('yuv422', 'uyvy'), ('uyvy', 'uyvy'), ('yuv422_yuy2', 'yuyv'), ('yuyv', 'yuyv')],
)
def test_yuv_of_one_colour_is_that_colour(encoding, order):
    # BT.601, video range: pure red
    values = {'y': 81, 'u': 90, 'v': 240}
    pixels = np.tile(np.array([values[part] for part in order], np.uint8), (HEIGHT, WIDTH // 2))
    image = decode(encoding, pixels)
    assert np.abs(image.astype(int) - (255, 0, 0)).max() <= 3


@pytest.mark.parametrize(('encoding', 'chroma'), [('nv12', (90, 240)), ('nv21', (240, 90))])
def test_two_planes_of_one_colour_are_that_colour(encoding, chroma):
    planes = np.vstack(
        [
            np.full((HEIGHT, WIDTH), 81, np.uint8),
            np.tile(np.array(chroma, np.uint8), (HEIGHT // 2, WIDTH // 2)),
        ]
    )
    image = decode(encoding, planes)
    assert image.shape == (HEIGHT, WIDTH, 3)
    assert np.abs(image.astype(int) - (255, 0, 0)).max() <= 3


@pytest.mark.parametrize('pattern', ['rggb', 'bggr', 'gbrg', 'grbg'])
def test_bayer_of_one_colour_is_that_colour(pattern):
    colour = {'r': 200, 'g': 120, 'b': 40}
    tile = np.array([colour[part] for part in pattern], np.uint8).reshape(2, 2)
    image = decode(f'bayer_{pattern}8', np.tile(tile, (HEIGHT // 2, WIDTH // 2)))
    np.testing.assert_array_equal(
        image[1:-1, 1:-1], np.broadcast_to([200, 120, 40], (HEIGHT - 2, WIDTH - 2, 3))
    )


@pytest.mark.parametrize('encoding', PIXEL_FORMATS)
def test_padded_rows_give_the_tight_image_bit_for_bit(encoding):
    pixel_format = PIXEL_FORMATS[encoding]
    num_rows, row_bytes = pixel_format.num_rows(HEIGHT), WIDTH * pixel_format.bytes_per_pixel
    rows = np.random.default_rng(1).integers(0, 256, (num_rows, row_bytes), np.uint8)
    padded = np.pad(rows, ((0, 0), (0, 13)), constant_values=99)
    tight = decode_image(encoding, HEIGHT, WIDTH, row_bytes, 0, rows.tobytes())
    image = decode_image(encoding, HEIGHT, WIDTH, row_bytes + 13, 0, padded.tobytes())
    np.testing.assert_array_equal(image, tight)
    assert tight.shape == (HEIGHT, WIDTH, 3) and tight.flags.c_contiguous


def test_any_buffer_will_do_and_the_result_cannot_be_written(rgb):
    raw = rgb.tobytes()
    for data in (raw, bytearray(raw), array('B', raw), memoryview(raw), rgb):
        image = decode_image('rgb8', HEIGHT, WIDTH, 3 * WIDTH, 0, data)
        np.testing.assert_array_equal(image, rgb)
        with pytest.raises(ValueError, match='read-only'):
            image[0, 0, 0] = 0


def test_tight_rgb_is_not_copied():
    data = array('B', bytes(HEIGHT * WIDTH * 3))
    image = decode_image('rgb8', HEIGHT, WIDTH, 3 * WIDTH, 0, data)
    assert np.shares_memory(image, np.frombuffer(data, np.uint8))


@pytest.mark.parametrize(
    ('field', 'message', 'arguments'),
    [
        ('encoding', '16UC1, which is depth', ('16UC1', 2, 2, 4, 0, bytes(8))),
        ('encoding', '32FC1, which is depth', ('32FC1', 2, 2, 8, 0, bytes(16))),
        ('encoding', "'rgb888_vendor'", ('rgb888_vendor', 2, 2, 6, 0, bytes(12))),
        ('encoding', "''", ('', 2, 2, 6, 0, bytes(12))),
        ('height', 'expected at least 1 pixels, got 0', ('rgb8', 0, 0, 0, 0, b'')),
        ('width', 'expected at least 1 pixels, got 0', ('rgb8', 2, 0, 0, 0, b'')),
        ('height', 'got -1', ('rgb8', -1, 2, 6, 0, bytes(6))),
        (
            'step',
            'expected at least 6 bytes .2 pixels rgb8., got 0',
            ('rgb8', 2, 2, 0, 0, bytes(12)),
        ),
        ('step', 'got 5', ('rgb8', 2, 2, 5, 0, bytes(12))),
        ('data', 'expected 12 bytes .2 rows of 6., got 11', ('rgb8', 2, 2, 6, 0, bytes(11))),
        ('data', 'got 13', ('rgb8', 2, 2, 6, 0, bytes(13))),
        ('data', 'expected a contiguous buffer', ('rgb8', 2, 2, 6, 0, None)),
        ('data', 'expected a contiguous buffer', ('rgb8', 2, 2, 6, 0, [0] * 12)),
        ('width', 'a multiple of 2', ('yuv422', 2, 3, 6, 0, bytes(12))),
        ('height', 'a multiple of 2', ('nv12', 3, 2, 2, 0, bytes(8))),
        ('height', 'at least 3', ('bayer_rggb8', 2, 4, 4, 0, bytes(8))),
    ],
)
def test_a_wrong_field_is_named_with_what_was_expected_and_what_came(field, message, arguments):
    with pytest.raises(ImageError, match=f'^{field}: .*{message}') as caught:
        decode_image(*arguments)
    assert caught.value.field == field


@given(
    encoding=strategies.sampled_from([*PIXEL_FORMATS, '16UC1', 'nonsense']),
    height=strategies.integers(-2, 12),
    width=strategies.integers(-2, 12),
    slack=strategies.integers(-3, 5),
    is_bigendian=strategies.integers(0, 255),
    extra=strategies.integers(-4, 4),
    fits=strategies.booleans(),
)
@settings(max_examples=500, deadline=None)
def test_random_fields_give_an_image_or_an_image_error(
    encoding, height, width, slack, is_bigendian, extra, fits
):
    pixel_format = PIXEL_FORMATS.get(encoding)
    row_bytes = width * (pixel_format.bytes_per_pixel if pixel_format else 1)
    step = max(0, row_bytes + slack)
    num_rows = pixel_format.num_rows(height) if pixel_format else height
    data = bytes(max(0, num_rows * step + (0 if fits else extra)))
    try:
        image = decode_image(encoding, height, width, step, is_bigendian, data)
    except ImageError as error:
        assert 'expected' in str(error) and 'got' in str(error)
    else:
        assert image.shape == (height, width, 3) and image.dtype == np.uint8


@given(
    encoding=strategies.text(),
    height=strategies.integers(0, 2**32 - 1),
    width=strategies.integers(0, 2**32 - 1),
    step=strategies.integers(0, 2**32 - 1),
    data=strategies.binary(max_size=64),
)
@settings(deadline=None)
def test_the_largest_sizes_a_message_can_state_are_refused(encoding, height, width, step, data):
    for name in (encoding, 'rgb8', 'bayer_rggb8', 'nv12'):
        with suppress(ImageError):
            decode_image(name, height, width, step, 0, data)


def test_a_strided_view_is_decoded_without_opencv_changing_it(rgb):
    # OpenCV is given rows with padding: what it computes must not depend on that.
    padded = np.pad(rgb[..., ::-1].reshape(HEIGHT, -1), ((0, 0), (0, 8)))
    before = padded.copy()
    image = decode_image('bgr8', HEIGHT, WIDTH, padded.shape[1], 0, padded)
    np.testing.assert_array_equal(
        image, cv2.cvtColor(np.ascontiguousarray(rgb[..., ::-1]), cv2.COLOR_BGR2RGB)
    )
    np.testing.assert_array_equal(padded, before)
