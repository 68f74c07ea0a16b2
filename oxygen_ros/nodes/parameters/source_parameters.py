# SPDX-License-Identifier: Apache-2.0
"""Parameters of the sources (cameras, recordings): read once at the start, refused in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.node import Node

from ...errors import OxygenError
from .spec import ParameterSpec

# Parameters that rclpy declares or reads by itself.
_FOREIGN = ('use_sim_time', 'start_type_description_service')


def declare(node: Node, specs: Sequence[ParameterSpec]) -> dict[str, Any]:
    """Declare read-only parameters and return their values by name.

    A whole number is taken where a real one is asked for: `rate:=2` is no mistake.

    :raises OxygenError: a value is of a wrong type or out of range, or a name is unknown.
    """
    given = dict(getattr(node, '_parameter_overrides', {}))  # rclpy has no public reading of these
    names = [spec.name for spec in specs]
    for name in given:
        if name not in names and name not in _FOREIGN and not name.startswith('qos_overrides.'):
            raise OxygenError(
                f'{name}: expected one of the parameters {", ".join(names)}, got an unknown one'
            )
    return {spec.name: _declare(node, spec) for spec in specs}


def _declare(node: Node, spec: ParameterSpec) -> Any:
    descriptor = spec.descriptor()
    descriptor.read_only = True
    # The check of the type is below, with a message of one form; ranges are checked there as well.
    descriptor.dynamic_typing = True
    descriptor.floating_point_range = descriptor.integer_range = []
    value: Any = node.declare_parameter(spec.name, spec.default, descriptor).value
    if isinstance(spec.default, list):
        value = list(value) if isinstance(value, list | tuple) else value
        sound = (
            isinstance(value, list)
            and bool(value)
            and all(type(item) is type(spec.default[0]) for item in value)
        )
    elif isinstance(spec.default, float):
        value = float(value) if type(value) is int else value
        sound = type(value) is float
    else:
        sound = type(value) is type(spec.default)
    if not sound:
        raise OxygenError(f'{spec.name}: expected a {spec.type_name}, got {value!r}')
    problem = spec.problem(value)
    if problem:
        raise OxygenError(problem)
    return value
