# SPDX-License-Identifier: Apache-2.0
"""A soft start: from where the robot is to where the chunk wants it."""

from __future__ import annotations

from .seam import mix


class Ramp:
    """Moves the weight of the wanted target from 0 to 1, starting and ending at rest.

    The ramp's time runs only while there are fresh targets: it starts with the first one, and
    after a hold it starts again from the held target. Owned by the tick's thread.
    """

    def __init__(self) -> None:
        """Begin without a ramp: targets pass unchanged."""
        self._origin: list[float] | None = None
        self._start_ns: int | None = None  # None: with the next fresh target
        self._duration_ns = 0

    def clear(self) -> None:
        """Let targets pass unchanged."""
        self._origin = None

    def begin(self, origin: list[float], duration_ns: int) -> None:
        """Ramp from a position, from the next fresh target on.

        :param origin: where the robot is, [num_joints].
        :param duration_ns: in nanoseconds; 0: no ramp.
        """
        self._origin = origin
        self._start_ns = None
        self._duration_ns = duration_ns

    def resume(self, held: list[float], duration_ns: int) -> None:
        """Ramp from a held target; a ramp that the hold cut short keeps its own duration.

        :param held: the target during the hold, [num_joints].
        :param duration_ns: for a ramp that had ended, in nanoseconds.
        """
        self.begin(held, duration_ns if self._origin is None else self._duration_ns)

    def apply(self, wanted: list[float], t_ns: int) -> list[float]:
        """Pull a fresh target towards the origin.

        :param wanted: the target, [num_joints].
        :param t_ns: the tick's deadline, in nanoseconds.
        :return: the origin itself at the ramp's first tick, `wanted` itself after its last.
        """
        if self._origin is None:
            return wanted
        if self._start_ns is None:
            self._start_ns = t_ns
        elapsed_ns = t_ns - self._start_ns
        if elapsed_ns >= self._duration_ns:
            self._origin = None
            return wanted
        done = elapsed_ns / self._duration_ns
        done *= done * (3.0 - 2.0 * done)
        return mix(self._origin, wanted, done)
