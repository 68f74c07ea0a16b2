# SPDX-License-Identifier: Apache-2.0
"""What a fleet costs an hour: boards over their lifetime, and power."""

from __future__ import annotations

from dataclasses import dataclass

HOURS_PER_MONTH = 365.25 * 24 / 12


@dataclass(frozen=True, slots=True)
class FleetCost:
    """One robot's computers.

    :raises ValueError: names the field, what was expected and what came.
    """

    price_usd: float  # of all its boards
    months: float = 36.0
    hours_per_day: float = 24.0
    power_w: float = 60.0
    usd_per_kwh: float = 0.15

    def __post_init__(self) -> None:
        for name in ('price_usd', 'power_w', 'usd_per_kwh'):
            if not 0.0 <= getattr(self, name) < float('inf'):
                raise ValueError(f'{name}: expected at least 0, got {getattr(self, name)}')
        if not 0.0 < self.months < float('inf'):
            raise ValueError(f'months: expected above 0, got {self.months}')
        if not 0.0 < self.hours_per_day <= 24.0:
            raise ValueError(f'hours_per_day: expected above 0 to 24, got {self.hours_per_day}')

    @property
    def hours(self) -> float:
        """Hours of use in the lifetime."""
        return self.months * HOURS_PER_MONTH * self.hours_per_day / 24.0

    @property
    def energy_usd(self) -> float:
        """Power over the lifetime."""
        return self.power_w * 1e-3 * self.hours * self.usd_per_kwh

    @property
    def usd_per_hour(self) -> float:
        """Boards and power by the hour of use."""
        return (self.price_usd + self.energy_usd) / self.hours


@dataclass(frozen=True, slots=True)
class HourlyClaim:
    """A stated cost by the hour beside the price that it should come from."""

    price_usd: float
    usd_per_hour: float

    @property
    def implied_hours(self) -> float:
        """Hours over which the price alone gives the stated cost."""
        return self.price_usd / self.usd_per_hour

    def missing_usd(self, cost: FleetCost) -> float:
        """Further cost that the stated figure would need over a lifetime, beside boards, power."""
        return self.usd_per_hour * cost.hours - self.price_usd - cost.energy_usd


# The OxyGen article's own case: one board against two, over 36 months.
ARTICLE_CLAIMS = (HourlyClaim(1200.0, 1.92), HourlyClaim(3800.0, 4.85))
