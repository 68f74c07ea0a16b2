# SPDX-License-Identifier: Apache-2.0
"""A camera whose driver lives and whose picture stands still: fresh stamps on the same pixels."""

from __future__ import annotations

import numpy as np

from .pixel_formats import Pixels

# The pixels that are compared first, in green: the noise of a sensor shows in a few.
_SAMPLE = (slice(None, None, 7), slice(None, None, 7), 1)


class FrozenImages:
    """Measures for how long a camera has given the same pixels. One thread at a time.

    A picture that changes costs the comparison of one pixel in 49; only one that seems to stand
    still is compared as a whole.

    :param after_ns: the same pixels for longer than this are a fault; 0: never.
    """

    def __init__(self, after_ns: int) -> None:
        self.still_ns = 0  # by the stamps, from the first to the last of the same pixels
        self._after_ns = after_ns
        self._image: Pixels | None = None
        self._since_ns = 0

    @property
    def is_frozen(self) -> bool:
        """Whether the newest image is a fault."""
        return bool(self._after_ns) and self.still_ns > self._after_ns

    def see(self, image: Pixels, stamp_ns: int) -> bool:
        """Take an image, [height, width, 3]; return whether the camera is frozen."""
        if not self._after_ns:
            return False
        if self._image is None or not _same(image, self._image):
            self._since_ns = stamp_ns
        self._image = image
        self.still_ns = stamp_ns - self._since_ns
        return self.is_frozen

    def forget(self) -> None:
        """Begin anew: the camera was off, or time jumped."""
        self._image = None
        self.still_ns = 0


def _same(first: Pixels, second: Pixels) -> bool:
    return (
        first.shape == second.shape
        and np.array_equal(first[_SAMPLE], second[_SAMPLE])
        and np.array_equal(first, second)
    )
