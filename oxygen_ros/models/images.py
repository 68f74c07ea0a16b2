# SPDX-License-Identifier: Apache-2.0
"""Camera images as a vision tower takes them: resized with padding, channels first, [-1, 1].

OpenCV's thread count is a setting of the whole process and is left alone here: it splits a resize
only by 65,536 output pixels, so the small images of this module are made in the calling thread.
"""

from __future__ import annotations

from enum import Enum

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
import torch
from torch import Tensor
from torch.nn import functional


def resize_with_padding(image: NDArray[np.uint8], size_px: int) -> NDArray[np.uint8]:
    """Fit an image into a black square, aspect kept, centred, bilinear.

    Sizes are truncated, and an odd pixel of padding goes right or below, as in openpi.

    :param image: [height, width, 3] uint8.
    :return: [size_px, size_px, 3] uint8; the argument itself where it already fits.
    :raises ValueError: the image has another shape or type, or no pixels.
    """
    _check(image)
    if image.shape[:2] == (size_px, size_px):
        return image
    new_height, new_width = _fitting_size(image, size_px)
    top, left = (size_px - new_height) // 2, (size_px - new_width) // 2
    square = np.zeros((size_px, size_px, 3), np.uint8)
    square[top : top + new_height, left : left + new_width] = cv2.resize(
        image, (new_width, new_height), interpolation=cv2.INTER_LINEAR
    )
    return square


def to_unit_range(image: NDArray[np.uint8], device: torch.device, dtype: torch.dtype) -> Tensor:
    """[height, width, 3] uint8 -> [3, height, width] in [-1, 1] (SigLIP's range)."""
    pixels = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
    return pixels.to(device).to(torch.float32).mul_(2.0 / 255.0).sub_(1.0).to(dtype)


class ImageConvention(str, Enum):
    """How the makers of a model bring an image to its size."""

    LEROBOT_CENTRED = 'lerobot_centred'  # pi0, pi0.5: in float, no anti-aliasing
    LEROBOT_TOP_LEFT = 'lerobot_top_left'  # SmolVLA: the same, padding left and above
    OPENPI = 'openpi'  # Pillow on bytes, anti-aliased, centred


def fit_image(image: NDArray[np.uint8], size_px: int, convention: ImageConvention) -> Tensor:
    """Fit an image into a black square as the model's makers do.

    LeRobot `policies/common/vla_utils.py`; openpi-client `image_tools.py`.

    :param image: [height, width, 3] uint8.
    :return: [3, size_px, size_px] float32 in [-1, 1] on the CPU; black is -1.
    :raises ValueError: the image has another shape or type, or no pixels.
    """
    _check(image)
    if convention is ImageConvention.OPENPI:
        image = resize_with_pillow(image, size_px)
    # A copy, for decoded frames are read-only, of which torch would warn.
    pixels = torch.from_numpy(image.astype(np.float32, order='C')).permute(2, 0, 1) / 255.0
    if image.shape[:2] != (size_px, size_px):
        height, width = _fitting_size(image, size_px)
        pixels = functional.interpolate(
            pixels[None], (height, width), mode='bilinear', align_corners=False
        )[0]
        below, right = 0, 0
        if convention is ImageConvention.LEROBOT_CENTRED:
            below, right = -(-(size_px - height) // 2), -(-(size_px - width) // 2)
        pixels = functional.pad(
            pixels, (size_px - width - right, right, size_px - height - below, below)
        )
    return pixels.mul_(2.0).sub_(1.0)


def resize_with_pillow(image: NDArray[np.uint8], size_px: int) -> NDArray[np.uint8]:
    """Fit an image into a black square with Pillow's anti-aliased bilinear filter, centred.

    :param image: [height, width, 3] uint8.
    :return: [size_px, size_px, 3] uint8; the argument itself where it already fits.
    """
    if image.shape[:2] == (size_px, size_px):
        return image
    height, width = _fitting_size(image, size_px)
    resized = Image.fromarray(np.ascontiguousarray(image)).resize(
        (width, height), Image.Resampling.BILINEAR
    )
    square = np.zeros((size_px, size_px, 3), np.uint8)
    top, left = (size_px - height) // 2, (size_px - width) // 2
    square[top : top + height, left : left + width] = np.asarray(resized)
    return square


def _check(image: NDArray[np.uint8]) -> None:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(
            'image: expected uint8 [height, width, 3] with pixels, '
            f'got {image.dtype} {list(image.shape)}'
        )


def _fitting_size(image: NDArray[np.uint8], size_px: int) -> tuple[int, int]:
    """Return the height and width with the image's aspect that just fit."""
    height, width = image.shape[:2]
    ratio = max(height, width) / size_px
    return max(1, int(height / ratio)), max(1, int(width / ratio))
