# SPDX-License-Identifier: Apache-2.0
"""The unmanaged baseline: work in order of arrival, each run to completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .scheduler import Scheduler
from .work import Work


class FifoScheduler(Scheduler):
    """First come, first served; the deadline is not looked at, and nothing is interrupted."""

    def run_slices(
        self,
        deadline_ns: int,
        ready: Callable[[], Sequence[Work]],
        interrupted: Callable[[], bool],
    ) -> int:
        num_slices = 0
        while not interrupted():
            works = [work for work in ready() if work.next_unit() is not None]
            if not works:
                break
            work = min(works, key=lambda work: work.arrived_ns)
            while work.next_unit() is not None:
                self.forward_step(work, deadline_ns)
                num_slices += 1
        return num_slices
