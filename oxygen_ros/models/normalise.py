# SPDX-License-Identifier: Apache-2.0
"""Normalisation of states and actions, by the arithmetic of whoever trained the model.

LeRobot `processor/normalize_processor.py` and openpi `transforms.py` differ in what they add to a
divisor; nothing is clipped by either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..types import FloatArray
from .errors import CheckpointError


class NormMode(str, Enum):
    """What is subtracted and what divided by; LeRobot's names."""

    IDENTITY = 'IDENTITY'
    MEAN_STD = 'MEAN_STD'
    MIN_MAX = 'MIN_MAX'
    QUANTILES = 'QUANTILES'
    QUANTILE10 = 'QUANTILE10'


# The two statistics of each mode that are mapped to -1 and 1.
_RANGES = {
    NormMode.MIN_MAX: ('min', 'max'),
    NormMode.QUANTILES: ('q01', 'q99'),
    NormMode.QUANTILE10: ('q10', 'q90'),
}


def needed_statistics(mode: NormMode) -> tuple[str, ...]:
    """Return the names of the statistics that a mode reads."""
    if mode is NormMode.IDENTITY:
        return ()
    return ('mean', 'std') if mode is NormMode.MEAN_STD else _RANGES[mode]


@dataclass(frozen=True, slots=True)
class Normaliser:
    """One feature's normalisation and its inverse, in float32.

    :param always_add: `eps` is added to every divisor (openpi), and not only where it is 0, or to
        a deviation (LeRobot).
    """

    mode: NormMode
    low: FloatArray  # [num_values]: mean, or what becomes -1
    high: FloatArray  # [num_values]: standard deviation, or what becomes 1
    eps: float
    always_add: bool = False

    @classmethod
    def load(
        cls,
        name: str,
        mode: NormMode,
        statistics: Mapping[str, FloatArray],
        size: int,
        eps: float,
        always_add: bool = False,
    ) -> Normaliser:
        """Take a feature's statistics.

        :param statistics: by name, each [size].
        :raises CheckpointError: one is missing, of another length, or not finite.
        """
        zero = np.zeros(size, np.float32)
        values = []
        for key in needed_statistics(mode):
            value = statistics.get(key)
            if value is None:
                raise CheckpointError(
                    f'statistics of {name}: expected {key} for {mode.value}, '
                    f'found {", ".join(sorted(statistics)) or "none"}'
                )
            value = np.asarray(value, np.float32)
            if value.shape != (size,):
                raise CheckpointError(
                    f'statistics of {name}: expected {key} of shape [{size}], '
                    f'got {list(value.shape)}'
                )
            if not np.isfinite(value).all():
                raise CheckpointError(f'statistics of {name}: expected finite {key}, got {value}')
            values.append(value)
        low, high = values or (zero, zero)
        return cls(mode, low, high, eps, always_add)

    def _span(self) -> FloatArray:
        span: FloatArray = self.high - self.low
        eps = np.float32(self.eps)
        return span + eps if self.always_add else np.where(span == 0, eps, span)

    def normalise(self, values: FloatArray) -> FloatArray:
        """SI units to the model's: [..., num_values] float32 -> the same shape."""
        if self.mode is NormMode.IDENTITY:
            return values
        if self.mode is NormMode.MEAN_STD:
            result: FloatArray = (values - self.low) / (self.high + np.float32(self.eps))
            return result
        result = 2.0 * (values - self.low) / self._span() - 1.0
        return result

    def unnormalise(self, values: FloatArray) -> FloatArray:
        """The model's units to SI: [..., num_values] float32 -> the same shape."""
        if self.mode is NormMode.IDENTITY:
            return values
        if self.mode is NormMode.MEAN_STD:
            deviation = self.high + np.float32(self.eps) if self.always_add else self.high
            result: FloatArray = values * deviation + self.low
            return result
        result = (values + 1.0) * self._span() / 2.0 + self.low
        return result
