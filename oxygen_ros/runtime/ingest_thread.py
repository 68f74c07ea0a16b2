# SPDX-License-Identifier: Apache-2.0
"""The ingest thread: callbacks may not decode images, and the engine must not wait for it."""

from __future__ import annotations

from collections.abc import Callable
import threading


class IngestThread:
    """Decodes what waits whenever it is woken; `start` and `stop` belong to one thread.

    :param decode_newest: decodes what waits of each camera.
    :param images: set by whoever has brought an image.
    """

    def __init__(self, decode_newest: Callable[[], None], images: threading.Event) -> None:
        self._decode_newest = decode_newest
        self._images = images
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start decoding, first of all what waits."""
        assert self._thread is None
        self._stopping = False
        self._images.set()
        self._thread = threading.Thread(target=self._run, name='oxygen_ingest', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop decoding."""
        thread = self._thread
        if thread is None:
            return
        self._stopping = True
        self._images.set()
        thread.join()
        self._thread = None

    def _run(self) -> None:
        while True:
            self._images.wait()
            self._images.clear()
            if self._stopping:
                return
            self._decode_newest()
