# SPDX-License-Identifier: Apache-2.0
"""The registry of attention backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from torch import Tensor

from .base import AttentionBackend


class BackendFactory(Protocol):
    """What a backend's class, or a function in its place, is called with."""

    def __call__(
        self, kv: Tensor, num_heads: int, scale: float | None = None
    ) -> AttentionBackend: ...


_Factory = TypeVar('_Factory', bound=BackendFactory)
_factories: dict[str, BackendFactory] = {}


def register(name: str) -> Callable[[_Factory], _Factory]:
    """Make a backend known by a name.

    :raises ValueError: the name is taken.
    """

    def add(factory: _Factory) -> _Factory:
        if name in _factories:
            raise ValueError(f'attention backend: {name!r} is registered already')
        _factories[name] = factory
        return factory

    return add


def backend_names() -> tuple[str, ...]:
    """Return the known names in order."""
    return tuple(sorted(_factories))


def create_backend(
    name: str, kv: Tensor, num_heads: int, scale: float | None = None
) -> AttentionBackend:
    """Create a backend over a K/V store.

    :param kv: [num_layers, 2, num_blocks, block_size, num_kv_heads, head_dim].
    :param scale: factor on the scores, head_dim ** -0.5 by default.
    :raises ValueError: no such backend, or the store does not fit the number of heads.
    """
    if name not in _factories:
        raise ValueError(
            f'attention backend: expected one of {", ".join(backend_names())}, got {name!r}'
        )
    return _factories[name](kv, num_heads, scale)
