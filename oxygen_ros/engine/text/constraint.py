# SPDX-License-Identifier: Apache-2.0
"""Constrained decoding as the engine sees it: a mask of the next token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class TokenConstraint(Protocol):
    """The state of one request's grammar; only the thread that owns the engine calls it."""

    @property
    def is_complete(self) -> bool:
        """True: the text is whole and nothing may follow."""
        ...

    def allowed(self) -> NDArray[np.bool_]:
        """Return which tokens may come next: [vocab_size] bool, one True at least, or complete."""
        ...

    def forced(self) -> Sequence[int]:
        """Return the tokens that must come next, whatever the model says; maybe none."""
        ...

    def advance(self, token: int) -> None:
        """Take the token that was chosen."""
        ...
