# SPDX-License-Identifier: Apache-2.0
"""Resize with padding, and the range of pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oxygen_ros.models.images import resize_with_padding, to_unit_range


@pytest.mark.parametrize(
    'height, width, rows, columns',
    [
        (480, 640, slice(14, 98), slice(0, 112)),  # landscape: bars above and below
        (640, 480, slice(0, 112), slice(14, 98)),
        (100, 112, slice(6, 106), slice(0, 112)),
        (37, 112, slice(37, 74), slice(0, 112)),  # 75 rows of padding: the odd one below
        (1, 1000, slice(55, 56), slice(0, 112)),  # never thinner than a pixel
        (56, 56, slice(0, 112), slice(0, 112)),  # enlarged
    ],
)
def test_aspect_is_kept_and_padding_is_black(
    height: int, width: int, rows: slice, columns: slice
) -> None:
    square = resize_with_padding(np.full((height, width, 3), 200, np.uint8), 112)
    inside = np.zeros((112, 112), bool)
    inside[rows, columns] = True
    assert square.shape == (112, 112, 3)
    assert (square[inside] == 200).all() and (square[~inside] == 0).all()


def test_a_fitting_image_is_not_copied() -> None:
    image = np.zeros((112, 112, 3), np.uint8)
    assert resize_with_padding(image, 112) is image


def test_read_only_and_reversed_views_are_read() -> None:
    image = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    image.flags.writeable = False
    reversed_view = resize_with_padding(image[:, :, ::-1], 112)
    assert np.array_equal(reversed_view, resize_with_padding(image, 112)[:, :, ::-1])


def test_range_and_layout_of_pixels() -> None:
    image = np.zeros((2, 4, 3), np.uint8)
    image[1, 3] = (255, 51, 0)
    tensor = to_unit_range(image, torch.device('cpu'), torch.float32)
    assert tensor.shape == (3, 2, 4)
    assert tensor[:, 1, 3].tolist() == pytest.approx([1.0, -0.6, -1.0], abs=1e-6)
    assert tensor[:, 0].eq(-1.0).all()


@pytest.mark.parametrize(
    'image',
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 3), np.float32),
    ],
    ids=['grey', 'rgba', 'empty', 'float'],
)
def test_other_images_are_refused(image: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r'image: expected uint8 \[height, width, 3\]'):
        resize_with_padding(image, 112)
