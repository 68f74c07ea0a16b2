# SPDX-License-Identifier: Apache-2.0
"""Settings as parameters of a node: declared with what the ROS tools show, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..robot.settings import check_names, SETTINGS
from ..setting import all_settings, make, Setting, SettingError, Value

# Parameters that rclpy declares or reads by itself.
_FOREIGN = ('use_sim_time', 'start_type_description_service')
_FOREIGN_PREFIXES = ('qos_overrides.',)
_INT64_MAX = 2**63 - 1
_T = TypeVar('_T')


def declare_all(node: Node, settings: Mapping[str, Setting] = SETTINGS) -> None:
    """Declare parameters of the robot.

    :param settings: those that this node needs; values given for others of the robot are left
        alone, so that one file can serve several nodes.
    :raises SettingError: a value is of a wrong type or out of range, or its name is unknown.
    """
    given = _given(node)
    check_names(given)
    for entry in settings.values():
        _declare(node, entry, given)


def declare_fixed(node: Node, cls: type[_T]) -> _T:
    """Declare a dataclass of settings as read-only parameters of their own, and return it.

    :raises SettingError: a value is of a wrong type or out of range, or a name is unknown.
    """
    settings, given = all_settings(cls), _given(node)
    for name in given:
        if name not in settings:
            raise SettingError(
                f'{name}: expected one of the parameters {", ".join(settings)}, got an unknown one'
            )
    values = {
        name: _declare(node, entry, given, read_only=True) for name, entry in settings.items()
    }
    return make(cls, values)


def _given(node: Node) -> dict[str, Any]:
    """Return what the command line, parameter files and the caller say, without rclpy's own."""
    overrides = getattr(node, '_parameter_overrides', {})  # rclpy has no public reading of these
    return {
        name: _plain(parameter.value)
        for name, parameter in overrides.items()
        if name not in _FOREIGN and not name.startswith(_FOREIGN_PREFIXES)
    }


def _declare(
    node: Node, entry: Setting, given: Mapping[str, Any], *, read_only: bool = False
) -> Value:
    value = entry.checked(given.get(entry.name, entry.default))
    descriptor = _descriptor(entry)
    descriptor.read_only |= read_only
    # Not as it was given: a whole number may stand for a real one.
    node.declare_parameter(entry.name, value, descriptor, ignore_override=True)
    return value


def _descriptor(entry: Setting) -> ParameterDescriptor:
    """Return the descriptor that the ROS tools show."""
    unit = f' ({entry.unit})' if entry.unit else ''
    descriptor = ParameterDescriptor(
        name=entry.name,
        description=f'{entry.text}{unit}',
        read_only=entry.fixed,
        additional_constraints=_change_text(entry),
    )
    low, high = entry.low, entry.high
    if entry.choices:
        descriptor.additional_constraints += f'; one of {", ".join(entry.choices)}'
    elif isinstance(entry.default, float) and (low, high) != (None, None):
        descriptor.floating_point_range = [
            FloatingPointRange(
                from_value=-float('inf') if low is None else float(low),
                to_value=float('inf') if high is None else float(high),
            )
        ]
    elif type(entry.default) is int and (low, high) != (None, None):
        descriptor.integer_range = [
            IntegerRange(
                from_value=-_INT64_MAX if low is None else int(low),
                to_value=_INT64_MAX if high is None else int(high),
                step=1,
            )
        ]
    return descriptor


def _change_text(entry: Setting) -> str:
    """Return when the value may be changed, if not at any time."""
    if entry.fixed:
        return 'only at the start of the process'
    return '' if entry.live else 'only while the node is unconfigured'


def read_all(node: Node) -> dict[str, Value]:
    """Return every declared parameter of the robot by name; lists as Python lists."""
    return {
        name: _plain(node.get_parameter(name).value)
        for name in SETTINGS
        if node.has_parameter(name)
    }


def _plain(value: Any) -> Any:
    """Return a parameter's value with arrays as lists."""
    return value if value is None or isinstance(value, bool | int | float | str) else list(value)


def refusal(changes: Iterable[Parameter[Value]], is_configured: bool) -> str:
    """Return why a set of changes cannot be made now; empty: it can."""
    for parameter in changes:
        entry = SETTINGS.get(parameter.name)
        if entry is None:
            continue
        if is_configured and not entry.live:
            return f'{entry.name}: expected an unconfigured node for this change (clean it up)'
        try:
            entry.checked(_plain(parameter.value))
        except SettingError as error:
            return str(error)
    return ''


def merged(values: Mapping[str, Value], changes: Iterable[Parameter[Value]]) -> dict[str, Value]:
    """Return the values with changes applied."""
    news = {
        parameter.name: _plain(parameter.value)
        for parameter in changes
        if parameter.name in SETTINGS
    }
    return {**values, **news}
