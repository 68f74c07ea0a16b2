# SPDX-License-Identifier: Apache-2.0
"""Joint states by name: the order and the number of a message's joints are the driver's affair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import JointStateError

_LARGEST = float(np.finfo(np.float32).max)  # states are float32


class JointMapper:
    """Picks the model's joints out of JointState messages.

    Only names and positions are looked at, so a NaN velocity or effort (the usual 'not measured')
    is no fault. One thread at a time.

    :param joint_names: in the model's order.
    :raises ValueError: no names, or one twice.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        if not self.joint_names:
            raise ValueError('joint_names: expected at least one name, got none')
        if len(set(self.joint_names)) != len(self.joint_names):
            raise ValueError(
                f'joint_names: expected different names, got {list(self.joint_names)}'
            )
        # A driver keeps its order, so the look-up is made once and not a thousand times a second.
        self._known_names: list[str] | None = None
        self._indices = np.zeros(0, np.intp)

    def map(self, names: Sequence[str], positions: Sequence[float]) -> NDArray[np.float64]:
        """Return the positions in the model's order.

        :param names: the message's joints, in any order, more than needed or not.
        :param positions: one for each name, SI units; a list, an array.array or an ndarray.
        :return: [num_joints] float64, a new array.
        :raises JointStateError: lengths differ, joints missing or named twice, a needed position
            not finite (as a float32).
        """
        if len(positions) != len(names):
            raise JointStateError(
                'position', f'{len(names)} values, one for each name', len(positions)
            )
        if names != self._known_names:
            self._look_up(list(names))
        try:
            values = np.asarray(positions, np.float64)[self._indices]
        except (TypeError, ValueError, IndexError) as error:
            raise JointStateError('position', 'numbers', error) from None
        if not (np.abs(values) <= _LARGEST).all():  # false for NaN too
            bad = [
                f'{name} = {value}'
                for name, value in zip(self.joint_names, values)
                if not abs(value) <= _LARGEST
            ]
            raise JointStateError('position', 'finite values', ', '.join(bad))
        return values

    def _look_up(self, names: list[str]) -> None:
        index_of = {name: index for index, name in enumerate(names)}
        missing = [name for name in self.joint_names if name not in index_of]
        if missing:
            raise JointStateError('name', f'also {", ".join(missing)}', f'only {names}')
        twice = [name for name in self.joint_names if names.count(name) > 1]
        if twice:
            raise JointStateError('name', 'each joint once', f'{", ".join(twice)} more than once')
        self._indices = np.array([index_of[name] for name in self.joint_names], np.intp)
        self._known_names = names
