# SPDX-License-Identifier: Apache-2.0
"""What came of each real-time setting that was asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RealtimeItem:
    """One setting after it was asked for."""

    name: str
    value: str  # what was asked for
    in_force: bool
    cause: str = ''  # why it was refused
    remedy: str = ''  # how to permit it

    def __str__(self) -> str:
        """Return one line for a log."""
        if self.in_force:
            return f'{self.name} {self.value}: in force'
        return f'{self.name} {self.value}: refused ({self.cause}); {self.remedy}'


@dataclass(frozen=True, slots=True)
class RealtimeReport:
    """All settings that were asked for."""

    items: tuple[RealtimeItem, ...] = ()

    @property
    def refused(self) -> tuple[RealtimeItem, ...]:
        """Return the settings that are not in force."""
        return tuple(item for item in self.items if not item.in_force)
