# SPDX-License-Identifier: Apache-2.0
"""Absolute deadlines of a periodic loop: late ones are counted and skipped, never made up for."""

from __future__ import annotations


class Cadence:
    """Deadline of tick i is `start_ns + i * period_ns`, so errors never add up.

    A deadline is missed when the loop reaches it more than `max_lateness_ns` late. A missed
    deadline is skipped: the next one keeps its place in the grid, and two runs are never closer
    together than `period_ns - max_lateness_ns`. Owned by the thread that paces itself with it.
    """

    def __init__(self, period_ns: int, start_ns: int, max_lateness_ns: int | None = None) -> None:
        """Lay out the grid.

        :param period_ns: time between two deadlines, in nanoseconds, above 0.
        :param start_ns: deadline of tick 0 on the steady clock, in nanoseconds.
        :param max_lateness_ns: a later start than this is a miss; half the period by default.
        :raises ValueError: a value is out of range.
        """
        if period_ns <= 0:
            raise ValueError(f'period_ns: expected above 0, got {period_ns}')
        if max_lateness_ns is None:
            max_lateness_ns = period_ns // 2
        if not 0 <= max_lateness_ns < period_ns:
            raise ValueError(
                f'max_lateness_ns: expected 0 to below {period_ns}, got {max_lateness_ns}'
            )
        self.period_ns = period_ns
        self.max_lateness_ns = max_lateness_ns
        self.tick = 0
        self.num_missed = 0
        self._start_ns = start_ns

    @property
    def deadline_ns(self) -> int:
        """Deadline of the present tick, in nanoseconds on the steady clock."""
        return self._start_ns + self.tick * self.period_ns

    def advance(self) -> None:
        """Go on to the next deadline, after the present one has been served."""
        self.tick += 1

    def skip_missed(self, now_ns: int) -> int:
        """Skip every deadline that can no longer be met.

        Takes the same time however many there are: the machine may have been asleep.

        :param now_ns: the time, in nanoseconds on the steady clock.
        :return: how many deadlines were skipped, 0 when the present one still stands.
        """
        late_ns = now_ns - self.deadline_ns - self.max_lateness_ns
        if late_ns <= 0:
            return 0
        num_missed = -(-late_ns // self.period_ns)
        self.tick += num_missed
        self.num_missed += num_missed
        return num_missed
