# SPDX-License-Identifier: Apache-2.0
"""From token bytes to text as it grows: whole characters only, and stop strings never shown."""

from __future__ import annotations

import codecs


class TextStream:
    """Incremental UTF-8 decoding with stop strings.

    Text that may be the beginning of a stop string is held back until it is known not to be.
    Invalid bytes become U+FFFD.
    """

    def __init__(self, stop: tuple[str, ...] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder('utf-8')(errors='replace')
        self._stop = stop
        self._held = ''
        self.text = ''  # all text given out
        self.stopped = False  # a stop string was met

    def push(self, data: bytes, final: bool = False) -> str:
        """Take more bytes; return the text that can be shown now.

        :param final: no more will come: nothing is held back.
        """
        if self.stopped:
            return ''
        self._held += self._decoder.decode(data, final)
        cut = min((at for stop in self._stop if (at := self._held.find(stop)) >= 0), default=-1)
        if cut >= 0:
            shown, self._held, self.stopped = self._held[:cut], '', True
        else:
            keep = 0 if final else self._suspicious_tail()
            split = len(self._held) - keep
            shown, self._held = self._held[:split], self._held[split:]
        self.text += shown
        return shown

    def _suspicious_tail(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        longest = 0
        for stop in self._stop:
            for length in range(min(len(stop) - 1, len(self._held)), longest, -1):
                if self._held.endswith(stop[:length]):
                    longest = length
                    break
        return longest
