# SPDX-License-Identifier: Apache-2.0
"""Bounds on what is stored: lengths of text, sizes of pages."""

from __future__ import annotations

MAX_TEXT_CHARS = 4_000  # of one utterance, instruction or query
MAX_NAME_CHARS = 128  # of a label, camera, frame, checksum
MAX_PAGE = 100  # entries of one answer
MAX_PLACE_DIMS = 4_096  # of a place embedding
CUT = '…'

# A control character means nothing in what is remembered, and a terminal that shows it would obey.
_CONTROLS = {code: ' ' for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in '\t\n'}


def bounded(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return text that every layer below can store: cut, valid UTF-8, no control characters.

    What is cut ends in an ellipsis, so that a reader sees it.
    """
    # The cut comes first: the rest costs time by the length, and a hostile text may be huge.
    if len(text) > max_chars:
        text = text[: max_chars - len(CUT)] + CUT
    return text.translate(_CONTROLS).encode('utf-8', 'replace').decode('utf-8')


def bounded_name(text: str) -> str:
    """Return a name that every layer below can store."""
    return bounded(text, MAX_NAME_CHARS)
