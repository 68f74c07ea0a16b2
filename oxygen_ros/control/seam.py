# SPDX-License-Identifier: Apache-2.0
"""One chunk in the buffer: its values over time, and how far it has been faded in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..types import ActionChunk
from . import hold_reasons

if TYPE_CHECKING:
    from typing_extensions import Self


class Seam:
    """Made by the thread that adds the chunk; from then on owned by the thread that samples.

    Values are lists of floats here and in the whole tick: for a few joints that takes a third of
    the time of numpy once other work has emptied the processor's caches (doc/control.md).
    """

    __slots__ = (
        'chunk_id',
        'observation_id',
        'observation_steady_ns',
        'epoch',
        'pass_started_ns',
        'start_ns',
        'end_ns',
        'fault',
        '_rows',
        '_step_ns',
        '_fade_start_ns',
        '_fade_ns',
    )

    def __init__(self, chunk: ActionChunk, rows: list[list[float]], fault: str) -> None:
        """Wrap checked values.

        :param chunk: where they come from.
        :param rows: [action_horizon, num_joints].
        :param fault: the hold reason for which the chunk must not be played, or empty.
        """
        self.chunk_id = chunk.chunk_id
        self.observation_id = chunk.provenance.observation_id
        self.observation_steady_ns = chunk.observation_steady_ns
        self.epoch = chunk.epoch
        self.pass_started_ns = chunk.pass_started_ns
        self.start_ns = chunk.start_steady_ns
        self.end_ns = chunk.start_steady_ns + (len(rows) - 1) * chunk.step_ns
        self.fault = fault
        self._rows = rows
        self._step_ns = chunk.step_ns
        self._fade_start_ns = 0
        self._fade_ns = 0

    @classmethod
    def of(cls, chunk: ActionChunk, num_joints: int) -> Self:
        """Check a chunk and copy its values, so that its owner may reuse them.

        :param chunk: from the engine or a message.
        :param num_joints: values expected in each step.
        :return: the chunk, with its fault if it has one.
        """
        values = chunk.values
        fault = ''
        if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] != num_joints:
            return cls(chunk, [[]], hold_reasons.REFUSED_LENGTH)
        if chunk.step_ns <= 0:
            fault = hold_reasons.REFUSED_TIMING
        elif not np.isfinite(values).all():
            fault = hold_reasons.REFUSED_NONFINITE
        return cls(chunk, values.tolist(), fault)

    def fade_in(self, start_ns: int, duration_ns: int) -> None:
        """Let the weight rise from 0 to 1.

        :param start_ns: when it is still 0, on the steady clock, in nanoseconds.
        :param duration_ns: how long it takes, in nanoseconds; 0: the weight is 1 at once.
        """
        self._fade_start_ns = start_ns
        self._fade_ns = duration_ns

    def weight_at(self, t_ns: int) -> float:
        """Return the weight against all older chunks.

        :param t_ns: steady time, in nanoseconds.
        :return: 0 to 1.
        """
        elapsed_ns = t_ns - self._fade_start_ns
        if not self._fade_ns or elapsed_ns >= self._fade_ns:
            return 1.0
        return max(elapsed_ns / self._fade_ns, 0.0)

    def values_at(self, t_ns: int) -> list[float]:
        """Interpolate between the two steps around a time; rest at the first and the last.

        :param t_ns: steady time, in nanoseconds.
        :return: [num_joints], not to be written to.
        """
        if t_ns <= self.start_ns:
            return self._rows[0]
        if t_ns >= self.end_ns:
            return self._rows[-1]
        step, rest_ns = divmod(t_ns - self.start_ns, self._step_ns)
        before = self._rows[step]
        if not rest_ns:
            return before
        return mix(before, self._rows[step + 1], rest_ns / self._step_ns)


class DeltaSeam(Seam):
    """A chunk of changes: step i is how far a joint moves from step i - 1 to step i.

    What it gives for a time is the change over the tick's period that ends then, so that the ticks
    of a chunk add up to all that it says, however they lie between its steps. Some joints' numbers
    may be positions, and are given as such.
    """

    __slots__ = ('_period_ns', '_deltas')
    _period_ns: int
    _deltas: tuple[bool, ...]

    @classmethod
    def of_deltas(cls, chunk: ActionChunk, deltas: tuple[bool, ...], period_ns: int) -> DeltaSeam:
        """Check a chunk and add its steps up.

        :param chunk: from the engine or a message.
        :param deltas: [num_joints] whether a joint's numbers are changes.
        :param period_ns: of the tick, in nanoseconds.
        :return: the chunk, with its fault if it has one.
        """
        seam = cls.of(chunk, len(deltas))
        seam._period_ns, seam._deltas = period_ns, deltas
        if seam.fault:
            return seam
        values = np.asarray(chunk.values, np.float64)
        sums = np.where(deltas, np.cumsum(values, axis=0), values)
        seam._rows = [np.where(deltas, 0.0, values[0]).tolist(), *sums.tolist()]
        seam.start_ns -= chunk.step_ns
        return seam

    def values_at(self, t_ns: int) -> list[float]:
        """Return the changes that end at a time; none before the first step and after the last.

        :param t_ns: steady time, in nanoseconds.
        :return: [num_joints], not to be written to.
        """
        now, before = super().values_at(t_ns), super().values_at(t_ns - self._period_ns)
        return [a - b if is_delta else a for a, b, is_delta in zip(now, before, self._deltas)]


def mix(first: list[float], second: list[float], weight: float) -> list[float]:
    """Go part of the way from one position to another.

    :param first: [num_joints].
    :param second: [num_joints].
    :param weight: 0 is the first, 1 the second.
    :return: [num_joints].
    """
    return [a + (b - a) * weight for a, b in zip(first, second)]
