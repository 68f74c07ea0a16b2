# SPDX-License-Identifier: Apache-2.0
"""The policy of best-effort work: what runs next, and how long before the next action is due.

Only time and costs are looked at here, never tensors, so that all of it is tested on a virtual
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..clock import WorkClock
from ..config import SchedulerConfig
from .cost_model import CostModel
from .timeline import EventKind, Timeline
from .work import Rank, Work

_EVENT_OF_RANK = {
    Rank.PREFIX: EventKind.PREFIX,
    Rank.DIALOGUE: EventKind.DIALOGUE,
    Rank.SCENE_GRAPH: EventKind.SCENE_GRAPH,
}


class Scheduler:
    """Priority slicing: prefix > dialogue > scene graph, with ageing, slices within deadlines.

    Rules, in this order:

    1. Nothing starts when less than the safety threshold is left before the deadline.
    2. Ready work of a rank that went unserved for longer than its patience goes first, the longest
       overdue first; otherwise the smallest rank goes first, and within a rank what stands first
       in the list.
    3. A unit whose estimate passes the deadline is not started; the next work in that order is
       tried.
    4. A unit longer than any cycle would never start by rule 3. At the beginning of a cycle it is
       started at once if the last one of its kind would fit, for then its estimate comes from a
       disturbance that seems over; otherwise after `oversize_patience` cycles (an action then
       waits for that one unit).
    5. A slice is as many units of one work as fit in the micro-slice by their estimates, at least
       one.
    """

    def __init__(
        self, config: SchedulerConfig, cost_model: CostModel, clock: WorkClock, timeline: Timeline
    ) -> None:
        self.config = config
        self.cost_model = cost_model
        self._clock = clock
        self._timeline = timeline
        self._micro_slice_ns = round(config.micro_slice_s * 1e9)
        self._threshold_ns = round(config.safety_threshold_s * 1e9)
        self._patience_ns = {
            Rank.DIALOGUE: round(config.dialogue_patience_s * 1e9),
            Rank.SCENE_GRAPH: round(config.scene_graph_patience_s * 1e9),
        }
        self._unserved_since_ns: dict[Rank, int] = {}  # ranks with ready work only
        self._refused_cycles: dict[Rank, int] = {}
        self._begun_deadline_ns: int | None = None  # of the newest cycle
        self.num_slices = 0

    def order(self, now_ns: int, works: Sequence[Work]) -> list[Work]:
        """Return the ready works in the order in which they should run (rule 2)."""
        ready = [work for work in works if work.next_unit() is not None]
        ranks = {work.rank for work in ready}
        for rank in list(self._unserved_since_ns):
            if rank not in ranks:
                del self._unserved_since_ns[rank]
        for rank in ranks:
            self._unserved_since_ns.setdefault(rank, now_ns)

        def key(work: Work) -> tuple[int, int]:
            since_ns = self._unserved_since_ns[work.rank]
            overdue_ns = now_ns - since_ns - self._patience_ns.get(work.rank, now_ns)
            return (-overdue_ns, 0) if overdue_ns > 0 else (0, work.rank)

        return sorted(ready, key=key)

    def next_best_effort_task(
        self, now_ns: int, deadline_ns: int, works: Sequence[Work], cycle_start: bool = False
    ) -> Work | None:
        """Return the work whose next unit should run now, or None (rules 1 to 4)."""
        left_ns = deadline_ns - now_ns
        if left_ns <= self._threshold_ns:
            return None
        for work in self.order(now_ns, works):
            unit = work.next_unit()
            assert unit is not None
            if self.cost_model.estimate_ns(unit) <= left_ns:
                return work
            if cycle_start:
                if self.cost_model.newest_ns(unit) <= left_ns:
                    return work
                refused = self._refused_cycles.get(work.rank, 0) + 1
                self._refused_cycles[work.rank] = refused
                if refused >= self.config.oversize_patience:
                    return work
        return None

    def forward_step(self, work: Work, deadline_ns: int) -> int:
        """Advance a work by one slice; return the number of units that ran (rule 5)."""
        start_ns = now_ns = self._clock.now_ns()
        end_by_ns = min(start_ns + self._micro_slice_ns, deadline_ns)
        rank = work.rank
        num_units = 0
        size = 0
        while (unit := work.next_unit()) is not None:
            estimate_ns = self.cost_model.estimate_ns(unit)
            if num_units and now_ns + estimate_ns > end_by_ns:
                break
            work.run_unit()
            self._clock.charge(estimate_ns)
            before_ns, now_ns = now_ns, self._clock.now_ns()
            self.cost_model.observe(unit, now_ns - before_ns)
            num_units += 1
            size = unit.size
        self._unserved_since_ns[rank] = now_ns
        self._refused_cycles.pop(rank, None)
        self.num_slices += 1
        self._timeline.record(_EVENT_OF_RANK[rank], start_ns, now_ns, num_units, size)
        return num_units

    def run_slices(
        self,
        deadline_ns: int,
        ready: Callable[[], Sequence[Work]],
        interrupted: Callable[[], bool],
    ) -> int:
        """Run slices until the deadline is near, nothing is ready or `interrupted()`; count them.

        :param ready: called before each slice; may look at the inbox first.
        :param interrupted: True when something more urgent came up (an action became due, or a
            stop).
        """
        num_slices = 0
        while not interrupted():
            works = ready()
            # Something new may call this many times before one deadline.
            cycle_start = deadline_ns != self._begun_deadline_ns
            self._begun_deadline_ns = deadline_ns
            work = self.next_best_effort_task(
                self._clock.now_ns(), deadline_ns, works, cycle_start
            )
            if work is None:
                break
            self.forward_step(work, deadline_ns)
            num_slices += 1
        return num_slices
