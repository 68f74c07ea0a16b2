# SPDX-License-Identifier: Apache-2.0
"""Cuts streamed text into pieces that can be spoken: sentences as soon as they are whole."""

from __future__ import annotations

_ENDS = '.!?\n'
_LONGEST = 240  # characters; a piece is cut there at the latest, for speech must not wait for ever


class UtteranceStream:
    """The text of one answer on its way to speech synthesis."""

    def __init__(self) -> None:
        self._rest = ''

    def push(self, text: str) -> list[str]:
        """Add text; return the sentences that are whole now."""
        self._rest += text
        pieces: list[str] = []
        while True:
            end = next((index for index, char in enumerate(self._rest) if char in _ENDS), -1)
            if end < 0 and len(self._rest) < _LONGEST:
                return pieces
            cut = end + 1 if end >= 0 else _LONGEST
            piece, self._rest = self._rest[:cut].strip(), self._rest[cut:]
            if piece:
                pieces.append(piece)

    def finish(self) -> list[str]:
        """Return what is left."""
        piece, self._rest = self._rest.strip(), ''
        return [piece] if piece else []
