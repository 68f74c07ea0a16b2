# SPDX-License-Identifier: Apache-2.0
"""A small table scene, seen by any number of cameras: pictures to try things with, made here."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

MAX_FRAMES = 60
MAX_BYTES = 48 << 20  # of all frames of all cameras together

# colour, radius of the path, turns a loop, phase, size; lengths in halves of the picture's height
_OBJECTS = (
    ((200, 40, 40), 0.55, 1, 0.0, 0.16),
    ((40, 80, 200), 0.30, -1, 2.1, 0.13),
    ((50, 160, 70), 0.75, 2, 4.2, 0.10),
)


def render_scene(
    camera: int, num_cameras: int, height: int, width: int
) -> list[NDArray[np.uint8]]:
    """Draw one loop of the scene as a camera sees it.

    The number of frames is bounded by memory; each differs from the one before, and the first
    follows on the last.

    :param camera: which one, from 0; each looks from another side.
    :return: [height, width, 3] uint8 RGB, each.
    """
    num_frames = MAX_BYTES // (num_cameras * height * width * 3)
    num_frames = max(4, min(MAX_FRAMES, num_frames))
    background = _background(camera, height, width)
    return [_frame(background, camera, number / num_frames) for number in range(num_frames)]


def _background(camera: int, height: int, width: int) -> NDArray[np.uint8]:
    rows = np.linspace(0.7, 1.0, height)[:, None, None]
    table = np.array([190, 165, 130]) - 25 * np.array([camera % 3, camera % 2, (camera + 1) % 3])
    image = np.broadcast_to(rows * table, (height, width, 3)).astype(np.uint8)
    step = max(8, height // 8)
    image[::step] = image[::step] // 4 * 3  # a grid, so that there is something to see everywhere
    image[:, ::step] = image[:, ::step] // 4 * 3
    return image


def _frame(background: NDArray[np.uint8], camera: int, phase: float) -> NDArray[np.uint8]:
    image = background.copy()
    height, width = image.shape[:2]
    unit = min(height, width) / 2
    view = camera * 2.0 * math.pi / 5.0
    for number, (colour, radius, turns, start, size) in enumerate(_OBJECTS):
        angle = 2.0 * math.pi * turns * phase + start + view
        centre = (
            round(width / 2 + unit * radius * math.cos(angle)),
            round(height / 2 + unit * radius * math.sin(angle) * (0.6 + 0.1 * camera % 0.4)),
        )
        half = max(1, round(unit * size))
        if number == 0:
            corner = (centre[0] - half, centre[1] - half)
            cv2.rectangle(image, corner, (centre[0] + half, centre[1] + half), colour, -1)
        else:
            cv2.circle(image, centre, half, colour, -1, cv2.LINE_AA)
    return image
