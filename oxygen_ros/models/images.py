"""Camera images as a vision tower takes them: resized with padding, channels first, [-1, 1].

OpenCV's thread count is a setting of the whole process and is left alone here: it splits a resize
only by 65,536 output pixels, so the small images of this module are made in the calling thread.
"""
from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray
import torch
from torch import Tensor


def resize_with_padding(image: NDArray[np.uint8], size_px: int) -> NDArray[np.uint8]:
    """Fit an image into a black square, aspect kept, centred, bilinear.

    Sizes are truncated, and an odd pixel of padding goes right or below, as in openpi.

    :param image: [height, width, 3] uint8.
    :return: [size_px, size_px, 3] uint8; the argument itself where it already fits.
    :raises ValueError: the image has another shape or type, or no pixels.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError('image: expected uint8 [height, width, 3] with pixels, '
                         f'got {image.dtype} {list(image.shape)}')
    height, width = image.shape[:2]
    if (height, width) == (size_px, size_px):
        return image
    ratio = max(height, width) / size_px
    new_height, new_width = max(1, int(height / ratio)), max(1, int(width / ratio))
    top, left = (size_px - new_height) // 2, (size_px - new_width) // 2
    square = np.zeros((size_px, size_px, 3), np.uint8)
    square[top:top + new_height, left:left + new_width] = cv2.resize(
        image, (new_width, new_height), interpolation=cv2.INTER_LINEAR)
    return square


def to_unit_range(image: NDArray[np.uint8], device: torch.device, dtype: torch.dtype) -> Tensor:
    """[height, width, 3] uint8 -> [3, height, width] in [-1, 1] (SigLIP's range)."""
    pixels = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
    return pixels.to(device).to(torch.float32).mul_(2.0 / 255.0).sub_(1.0).to(dtype)
