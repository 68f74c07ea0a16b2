# SPDX-License-Identifier: Apache-2.0
"""The policy of best-effort work, on a virtual clock with a table of costs."""

from dataclasses import dataclass

import pytest

from oxygen_ros.engine.clock import VirtualWorkClock
from oxygen_ros.engine.config import SchedulerConfig
from oxygen_ros.engine.scheduling.cost_model import OnlineCostModel, TableCostModel
from oxygen_ros.engine.scheduling.fifo import FifoScheduler
from oxygen_ros.engine.scheduling.scheduler import Scheduler
from oxygen_ros.engine.scheduling.timeline import EventKind, Timeline
from oxygen_ros.engine.scheduling.work import Rank, UnitKey, UnitKind

MS = 1_000_000
PERIOD_NS = 20 * MS


class ManualClock:
    """Time moves only when fake work runs."""

    def __init__(self):
        self.now = 0

    def now_ns(self):
        return self.now

    def charge(self, cost_ns):
        pass


@dataclass
class FakeWork:
    """`num_units` units of a kind, each taking `cost_ns` in truth."""

    clock: ManualClock
    rank: Rank
    kind: UnitKind
    cost_ns: int
    num_units: int
    arrived_ns: int = 0
    ran: int = 0

    def next_unit(self):
        return UnitKey(self.kind, 1) if self.ran < self.num_units else None

    def run_unit(self):
        self.ran += 1
        self.clock.now += self.cost_ns


def prefix(clock, units=10_000, cost_ns=MS):
    return FakeWork(clock, Rank.PREFIX, UnitKind.PREFILL, cost_ns, units)


def dialogue(clock, units=10_000, cost_ns=MS):
    return FakeWork(clock, Rank.DIALOGUE, UnitKind.DECODE, cost_ns, units)


def scene(clock, units=10_000, cost_ns=MS):
    return FakeWork(clock, Rank.SCENE_GRAPH, UnitKind.TEXT_PREFILL, cost_ns, units)


def make(clock, table=None, config=None, cls=Scheduler, cost_model=None):
    cost_model = cost_model or TableCostModel(table or {}, default_ns=MS)
    return cls(config or SchedulerConfig(), cost_model, clock, Timeline())


def run_ticks(scheduler, clock, works, num_ticks, action_ns=5 * MS):
    """Run cycles on a 20 ms grid; return how late each action started."""
    lateness = []
    for tick in range(num_ticks):
        due = tick * PERIOD_NS
        clock.now = max(clock.now, due)
        lateness.append(clock.now - due)
        clock.now += action_ns
        scheduler.run_slices(due + PERIOD_NS, lambda: works, lambda: False)
    return lateness


def never():
    return False


def test_order_is_prefix_then_dialogue_then_scene_graph():
    clock = ManualClock()
    works = [scene(clock), dialogue(clock), prefix(clock)]
    scheduler = make(clock)
    assert [work.rank for work in scheduler.order(0, works)] == [
        Rank.PREFIX,
        Rank.DIALOGUE,
        Rank.SCENE_GRAPH,
    ]


def test_no_slice_starts_within_the_safety_threshold():
    clock = ManualClock()
    scheduler = make(clock)
    works = [prefix(clock)]
    clock.now = PERIOD_NS - round(2.5 * MS)
    assert scheduler.next_best_effort_task(clock.now, PERIOD_NS, works) is None
    clock.now -= 1
    assert scheduler.next_best_effort_task(clock.now, PERIOD_NS, works) is works[0]


def test_a_slice_that_would_pass_the_deadline_is_not_started_and_a_shorter_one_is():
    clock = ManualClock()
    scheduler = make(clock, {UnitKey(UnitKind.PREFILL, 1): 8 * MS})
    clock.now = PERIOD_NS - 5 * MS
    long, short = prefix(clock, cost_ns=8 * MS), dialogue(clock)
    assert scheduler.next_best_effort_task(clock.now, PERIOD_NS, [long, short]) is short
    assert scheduler.next_best_effort_task(clock.now, PERIOD_NS, [long]) is None


def test_a_slice_ends_within_the_micro_slice():
    clock = ManualClock()
    scheduler = make(clock)
    work = prefix(clock)
    assert scheduler.forward_step(work, PERIOD_NS) == 3
    assert clock.now == 3 * MS


def test_a_unit_longer_than_the_micro_slice_still_runs_alone():
    clock = ManualClock()
    scheduler = make(clock, {UnitKey(UnitKind.PREFILL, 1): 6 * MS})
    work = prefix(clock, cost_ns=6 * MS)
    assert scheduler.forward_step(work, PERIOD_NS) == 1


@pytest.mark.parametrize('works', [(prefix,), (dialogue,), (scene,), (prefix, dialogue, scene)])
def test_a_due_action_never_waits_when_costs_are_as_estimated(works):
    clock = ManualClock()
    scheduler = make(clock)
    lateness = run_ticks(scheduler, clock, [make_work(clock) for make_work in works], 200)
    assert max(lateness) == 0


def test_under_saturating_prefill_dialogue_and_scene_graph_advance():
    clock = ManualClock()
    scheduler = make(clock)
    works = [prefix(clock), dialogue(clock), scene(clock)]
    run_ticks(scheduler, clock, works, 50)  # one second
    # One slice of three units each time patience ends: 30 ms and 100 ms, on a grid of 20 ms.
    assert works[1].ran >= 3 * 20
    assert works[2].ran >= 3 * 7
    assert works[0].ran > works[1].ran > works[2].ran


def test_under_saturating_dialogue_the_scene_graph_meets_its_period():
    clock = ManualClock()
    scheduler = make(clock)
    # An update of 4 prefill layers and 128 decode steps that ride in the batch: its own part is
    # the prefill.
    works = [dialogue(clock), scene(clock, units=12)]
    run_ticks(scheduler, clock, works, 50)
    assert works[1].ran == 12


def test_a_unit_longer_than_any_cycle_is_started_at_a_cycle_start_after_some_patience():
    clock = ManualClock()
    scheduler = make(clock, {UnitKey(UnitKind.PREFILL, 1): 30 * MS})
    work = prefix(clock, units=1, cost_ns=30 * MS)
    lateness = run_ticks(scheduler, clock, [work], 10)
    assert work.ran == 1
    assert sum(late > 0 for late in lateness) == 1


def test_a_wrong_cost_table_delays_an_action_at_most_once():
    clock = ManualClock()
    model = OnlineCostModel({UnitKey(UnitKind.PREFILL, 1): 3 * MS})
    scheduler = make(clock, cost_model=model)
    lateness = run_ticks(scheduler, clock, [prefix(clock, cost_ns=15 * MS)], 50)
    assert sum(late > 0 for late in lateness) <= 1


def test_a_unit_that_becomes_slower_delays_actions_at_most_twice():
    clock = ManualClock()
    scheduler = make(clock, cost_model=OnlineCostModel())
    work = prefix(clock, cost_ns=2 * MS)
    run_ticks(scheduler, clock, [work], 50)
    work.cost_ns = 12 * MS
    lateness = [late for late in run_ticks_from(scheduler, clock, [work], 50, 50)]
    assert sum(late > 0 for late in lateness) <= 2


def test_a_unit_that_becomes_longer_than_a_cycle_is_started_seldom():
    clock = ManualClock()
    scheduler = make(clock, cost_model=OnlineCostModel())
    work = prefix(clock, cost_ns=2 * MS)
    run_ticks(scheduler, clock, [work], 50)
    work.cost_ns = 17 * MS
    late = [late > 0 for late in run_ticks_from(scheduler, clock, [work], 50, 50)]
    assert sum(late[:10]) <= 5
    assert 10 <= sum(late[10:]) <= 14  # every third cycle


def test_after_a_disturbance_units_run_again_as_soon_as_they_fit():
    clock = ManualClock()
    scheduler = make(clock, cost_model=OnlineCostModel())
    work = prefix(clock, cost_ns=2 * MS)
    run_ticks(scheduler, clock, [work], 50)
    work.cost_ns = 40 * MS  # something else has the core
    list(run_ticks_from(scheduler, clock, [work], 50, 30))
    work.cost_ns = 2 * MS
    ran = work.ran
    late = list(run_ticks_from(scheduler, clock, [work], 82, 40))
    assert work.ran - ran >= 200  # of 280 that fit into 40 cycles
    assert not any(late[1:])


def test_what_is_refused_counts_once_for_each_deadline():
    clock = ManualClock()
    scheduler = make(clock, {UnitKey(UnitKind.PREFILL, 1): 30 * MS})
    work = prefix(clock, units=1, cost_ns=30 * MS)
    for _ in range(20):  # each image that comes wakes the engine
        clock.now += MS // 2
        assert scheduler.run_slices(PERIOD_NS, lambda: [work], never) == 0
    clock.now = PERIOD_NS
    assert scheduler.run_slices(2 * PERIOD_NS, lambda: [work], never) == 0
    clock.now = 2 * PERIOD_NS
    assert scheduler.run_slices(3 * PERIOD_NS, lambda: [work], never) == 1


def run_ticks_from(scheduler, clock, works, first, num_ticks):
    for tick in range(first, first + num_ticks):
        due = tick * PERIOD_NS
        clock.now = max(clock.now, due)
        yield clock.now - due
        clock.now += 5 * MS
        scheduler.run_slices(due + PERIOD_NS, lambda: works, never)


def test_one_hiccup_leaves_the_estimate_again():
    model = OnlineCostModel(window=8)
    key = UnitKey(UnitKind.DECODE, 4)
    for _ in range(8):
        model.observe(key, MS)
    model.observe(key, 50 * MS)
    model.observe(key, MS)
    for _ in range(8):
        model.observe(key, MS)
    assert model.estimate_ns(key) == MS


def test_an_unseen_size_is_estimated_from_the_nearest_of_its_kind():
    model = OnlineCostModel()
    model.observe(UnitKey(UnitKind.DECODE, 4), MS)
    assert model.estimate_ns(UnitKey(UnitKind.DECODE, 8)) == 2 * MS
    assert model.estimate_ns(UnitKey(UnitKind.DECODE, 2)) == MS


def test_warm_up_is_not_observed():
    model = OnlineCostModel()
    model.recording = False
    model.observe(UnitKey(UnitKind.DECODE, 4), 500 * MS)
    model.recording = True
    assert model.estimate_ns(UnitKey(UnitKind.DECODE, 4)) == MS


def test_interruption_ends_the_cycle_at_a_slice_border():
    clock = ManualClock()
    scheduler = make(clock)
    work = prefix(clock)
    assert scheduler.run_slices(10 * PERIOD_NS, lambda: [work], lambda: clock.now >= 5 * MS) == 2


def test_fifo_runs_in_order_of_arrival_to_completion():
    clock = ManualClock()
    scheduler = make(clock, cls=FifoScheduler)
    first, second = dialogue(clock, units=40), prefix(clock, units=5)
    second.arrived_ns = 1
    scheduler.run_slices(PERIOD_NS, lambda: [second, first], lambda: first.ran > 0)
    assert (first.ran, second.ran) == (40, 0)
    assert clock.now == 40 * MS


def test_virtual_time_passes_by_the_table():
    clock = VirtualWorkClock()
    scheduler = make(clock, {UnitKey(UnitKind.DECODE, 1): 2 * MS})

    class Silent(FakeWork):
        def run_unit(self):
            self.ran += 1

    work = Silent(clock, Rank.DIALOGUE, UnitKind.DECODE, 0, 3)
    scheduler.run_slices(PERIOD_NS, lambda: [work], never)
    assert clock.now_ns() == 6 * MS


def test_slices_are_recorded_in_the_timeline():
    clock = ManualClock()
    timeline = Timeline(capacity=2)
    scheduler = Scheduler(SchedulerConfig(), TableCostModel({}), clock, timeline)
    scheduler.run_slices(PERIOD_NS, lambda: [prefix(clock, units=9)], never)
    events = timeline.events()
    assert [event.kind for event in events] == [EventKind.PREFIX, EventKind.PREFIX]
    assert all(event.end_ns - event.start_ns == 3 * MS for event in events)


@pytest.mark.parametrize(
    'field, value',
    [('micro_slice_s', 0.0), ('safety_threshold_s', -1.0), ('oversize_patience', 0)],
)
def test_a_bad_setting_names_field_and_value(field, value):
    with pytest.raises(ValueError, match=f'scheduler.{field}: expected .* got {value:g}'):
        SchedulerConfig(**{field: value})
