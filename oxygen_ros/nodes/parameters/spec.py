# SPDX-License-Identifier: Apache-2.0
"""One ROS parameter as it is declared: type, default, unit, range and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

Value: TypeAlias = bool | int | float | str | list[str] | list[float] | list[int]

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One row of the table of parameters; the type is that of the default.

    :raises ValueError: the default is out of range or no choice (a mistake in the table).
    """

    name: str
    default: Value
    description: str
    unit: str = ''
    low: float | None = None  # bounds of a number, or of each number of a list
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = False  # True: may be changed while the node is configured
    fixed: bool = False  # True: stays as it was when the node was made

    def __post_init__(self) -> None:
        problem = self.problem(self.default)
        if problem:
            raise ValueError(f'table of parameters: {problem}')

    @property
    def type_name(self) -> str:
        """The type in the words of the ROS tools."""
        value = self.default
        if isinstance(value, list):
            return f'{_TYPE_NAMES[type(value[0])]}[]'
        return _TYPE_NAMES[type(value)]

    @property
    def change_text(self) -> str:
        """When the value may be changed, if not at any time."""
        if self.fixed:
            return 'only at the start of the process'
        return '' if self.live else 'only while the node is unconfigured'

    @property
    def range_text(self) -> str:
        """The range or the choices as text; empty: any value."""
        if self.choices:
            return ', '.join(self.choices)
        if self.low is None and self.high is None:
            return ''
        if self.high is None:
            return f'at least {self.low:g}'
        if self.low is None:
            return f'at most {self.high:g}'
        return f'{self.low:g} to {self.high:g}'

    def problem(self, value: object) -> str:
        """Return why a value of the right type is refused; empty: it is not."""
        if self.choices and value not in self.choices:
            return f'{self.name}: expected one of {", ".join(self.choices)}, got {value!r}'
        for number in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(number, (int, float)) and not self._in_range(number):
                return f'{self.name}: expected {self.range_text}, got {number:g}'
        return ''

    def _in_range(self, number: float) -> bool:
        # Written so that NaN, which compares as neither, is refused.
        low_ok = self.low is None or number >= self.low
        return low_ok and (self.high is None or number <= self.high)

    def descriptor(self) -> ParameterDescriptor:
        """Return the descriptor that the ROS tools show."""
        unit = f' ({self.unit})' if self.unit else ''
        descriptor = ParameterDescriptor(
            name=self.name,
            description=f'{self.description}{unit}',
            read_only=self.fixed,
            additional_constraints=self.change_text,
        )
        low, high = self.low, self.high
        if self.choices:
            descriptor.additional_constraints += f'; one of {", ".join(self.choices)}'
        elif isinstance(self.default, float) and (low, high) != (None, None):
            descriptor.floating_point_range = [
                FloatingPointRange(
                    from_value=-float('inf') if low is None else float(low),
                    to_value=float('inf') if high is None else float(high),
                )
            ]
        elif type(self.default) is int and (low, high) != (None, None):
            descriptor.integer_range = [
                IntegerRange(
                    from_value=-_INT64_MAX if low is None else int(low),
                    to_value=_INT64_MAX if high is None else int(high),
                    step=1,
                )
            ]
        return descriptor


_TYPE_NAMES: dict[type, str] = {bool: 'bool', int: 'integer', float: 'double', str: 'string'}
