# SPDX-License-Identifier: Apache-2.0
"""Declaring the table of parameters on a node, and reading it back as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rclpy.exceptions import (
    InvalidParameterException,
    InvalidParameterTypeException,
    InvalidParameterValueException,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from ...errors import OxygenError
from .spec import ParameterSpec, Value
from .table import PARAMETERS

# Parameters that rclpy declares or reads by itself.
_FOREIGN = ('use_sim_time', 'start_type_description_service')
_FOREIGN_PREFIXES = ('qos_overrides.',)

SPECS: dict[str, ParameterSpec] = {spec.name: spec for spec in PARAMETERS}


class ParameterError(OxygenError):
    """A parameter cannot be used."""


def declare_all(node: Node, specs: Iterable[ParameterSpec] = PARAMETERS) -> None:
    """Declare parameters of the table.

    :param specs: those that this node needs; values given for others of the table are left alone,
        so that one file can serve several nodes.
    :raises ParameterError: a value is of a wrong type or out of range, or its name is unknown.
    """
    given = dict(getattr(node, '_parameter_overrides', {}))  # rclpy has no public reading of these
    unknown = [
        name
        for name in given
        if name not in SPECS and name not in _FOREIGN and not name.startswith(_FOREIGN_PREFIXES)
    ]
    if unknown:
        raise ParameterError(
            f'{unknown[0]}: expected the name of a parameter, got an unknown one '
            '(config/oxygen.yaml lists them all)'
        )
    for spec in specs:
        if spec.name in given:
            _check(spec, given[spec.name])
        try:
            node.declare_parameter(spec.name, spec.default, spec.descriptor())
        except (
            InvalidParameterException,
            InvalidParameterTypeException,
            InvalidParameterValueException,
        ) as error:
            raise ParameterError(
                f'{spec.name}: expected a {spec.type_name}, got: {error}'
            ) from error


def _check(spec: ParameterSpec, parameter: Parameter[Value]) -> None:
    value = parameter.value
    expected = Parameter.Type.from_parameter_value(spec.default)
    if not _has_items(value):
        raise ParameterError(
            f"{spec.name}: expected a {spec.type_name}, got an empty list (among names [''] "
            'stands for none)'
        )
    if not expected.check(value):
        is_whole = expected is Parameter.Type.DOUBLE and type(value) is int
        hint = f' (write {value}.0)' if is_whole else ''
        raise ParameterError(f'{spec.name}: expected a {spec.type_name}, got {value!r}{hint}')
    problem = spec.problem(parameter.value)
    if problem:
        raise ParameterError(problem)


def _has_items(value: object) -> bool:
    """Return False for an empty list, which rclpy gives as None from the command line."""
    return value is not None and not (isinstance(value, (list, tuple)) and not value)


def read_all(node: Node) -> dict[str, Value]:
    """Return every declared parameter of the table by name; lists as Python lists."""
    return {
        name: plain(node.get_parameter(name).value) for name in SPECS if node.has_parameter(name)
    }


def plain(value: object) -> Value:
    """Return a parameter's value with arrays as lists."""
    if isinstance(value, (bool, int, float, str)):
        return value
    assert isinstance(value, Iterable)
    return list(value)


def refusal(changes: Iterable[Parameter[Value]], is_configured: bool) -> str:
    """Return why a set of changes cannot be made now; empty: it can."""
    for parameter in changes:
        spec = SPECS.get(parameter.name)
        if spec is None:
            continue
        if is_configured and not spec.live:
            return f'{spec.name}: expected an unconfigured node for this change (clean it up)'
        if not _has_items(parameter.value):
            return f'{spec.name}: expected at least one value, got none'
        problem = spec.problem(parameter.value)
        if problem:
            return problem
    return ''


def merged(values: Mapping[str, Value], changes: Iterable[Parameter[Value]]) -> dict[str, Value]:
    """Return the values with changes applied."""
    news = {
        parameter.name: plain(parameter.value) for parameter in changes if parameter.name in SPECS
    }
    return {**values, **news}
