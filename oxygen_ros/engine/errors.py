# SPDX-License-Identifier: Apache-2.0
"""Errors of the engine's memory."""

from ..errors import OxygenError


class PoolError(OxygenError):
    """The accounting was misused (freed twice, released below zero): a bug of the caller."""


class PrefixImmutableError(PoolError):
    """A block that a registered prefix owns was to be written."""


class NeverFitsError(OxygenError):
    """A request needs more than the whole pool can ever give."""

    def __init__(self, what: str, needed: int, available: int) -> None:
        super().__init__(f'{what}: needed {needed} blocks, available {available} in all')
        self.needed = needed
        self.available = available
