# SPDX-License-Identifier: Apache-2.0
"""Accounting of blocks: exact, and never fragmented."""

import random

from hypothesis import settings, strategies
from hypothesis.stateful import invariant, precondition, rule, RuleBasedStateMachine
import pytest

from oxygen_ros.engine.errors import PoolError
from oxygen_ros.engine.kv.block_pool import BlockPool


def make(num_slots=4, slot_blocks=3, num_runs=8, stride=3, reserved=2):
    return BlockPool(num_slots, slot_blocks, num_runs, stride, reserved)


def test_text_takes_every_block_but_the_reserve_and_gives_all_back():
    pool = make()
    blocks = []
    while (block := pool.take_block()) is not None:
        blocks.append(block)
    assert len(set(blocks)) == len(blocks) == pool.max_text_blocks == 18
    assert pool.num_available_text == 0
    assert pool.take_run() is not None
    assert pool.take_run() is not None
    assert pool.take_run() is None
    random.Random(0).shuffle(blocks)
    for block in blocks:
        pool.free_block(block)
    pool.check()
    assert pool.num_available_text == 18


def test_a_run_whose_text_came_back_is_an_action_run_again():
    pool = make(num_runs=3, reserved=1)
    first = [pool.take_block() for _ in range(6)]
    assert [pool.take_run(), pool.take_run()][1] is None
    for block in first[:3]:
        pool.free_block(block)
    assert pool.take_run() is not None


def test_runs_are_contiguous_and_aligned():
    pool = make()
    runs = [pool.take_run() for _ in range(8)]
    assert sorted(runs) == [pool.first_run_block + 3 * index for index in range(8)]


def test_the_border_moves_with_demand():
    pool = make()
    runs = [pool.take_run() for _ in range(6)]
    assert pool.num_available_text == 2 * 3
    for run in runs:
        pool.free_run(run)
    assert pool.num_available_text == 6 * 3


def test_text_fills_the_runs_it_has_opened_before_it_opens_another():
    pool = make()
    blocks = [pool.take_block() for _ in range(7)]
    assert pool.num_free_runs == 5
    for block in (blocks[1], blocks[4]):
        pool.free_block(block)
    for _ in range(4):
        pool.take_block()
    assert pool.num_free_runs == 5


def test_every_block_is_free_owned_or_shared():
    pool = make()
    building, shared = pool.take_slot(), pool.take_slot()
    pool.share_slot(shared)
    run, block = pool.take_run(), pool.take_block()
    owned = {
        *range(pool.slot_block(building), pool.slot_block(building) + 3),
        *range(run, run + 3),
        block,
    }
    readable = set(range(pool.slot_block(shared), pool.slot_block(shared) + 3))
    everywhere = range(-2, pool.num_blocks + 2)
    assert {block for block in everywhere if pool.is_owned(block)} == owned
    assert {block for block in everywhere if pool.is_shared(block)} == readable
    assert (pool.num_owned, pool.num_shared) == (len(owned), len(readable))


def test_a_slot_is_free_when_its_last_reader_leaves():
    pool = make()
    slot = pool.take_slot()
    pool.share_slot(slot)
    pool.retain(slot)
    assert not pool.release(slot)
    assert pool.is_shared(pool.slot_block(slot))
    assert pool.release(slot)
    assert pool.num_shared == 0


@pytest.mark.parametrize(
    'misuse',
    [
        lambda pool: pool.release(0),
        lambda pool: pool.retain(0),
        lambda pool: pool.share_slot(0),
        lambda pool: pool.drop_slot(0),
        lambda pool: [pool.take_slot() for _ in range(4)] and pool.share_slot(-1),
        lambda pool: [pool.take_slot() for _ in range(4)] and pool.drop_slot(4),
        lambda pool: [pool.share_slot(pool.take_slot()), pool.retain(4)],
        lambda pool: [pool.share_slot(pool.take_slot()), pool.drop_slot(0)],
        lambda pool: [pool.share_slot(pool.take_slot()), pool.release(0), pool.release(0)],
        lambda pool: pool.free_block(pool.num_blocks),
        lambda pool: pool.free_block(pool.take_run()),
        lambda pool: pool.free_run(pool.take_run() + 1),
        lambda pool: pool.free_run(pool.first_run_block),
        lambda pool: pool.free_run(pool.first_run_block + 1),
        lambda pool: pool.free_block(pool.first_run_block),
        lambda pool: pool.free_block(0),
        lambda pool: [pool.free_block(block) for block in [pool.take_block()] * 2],
        lambda pool: [pool.free_run(run) for run in [pool.take_run()] * 2],
    ],
)
def test_misuse_is_an_error_and_breaks_no_book(misuse):
    pool = make()
    with pytest.raises(PoolError):
        misuse(pool)
    pool.check()


class PoolMachine(RuleBasedStateMachine):
    """Any order of operations keeps the books."""

    def __init__(self):
        super().__init__()
        self.pool = make()
        self.building, self.shared, self.runs, self.blocks = [], {}, [], []

    @rule()
    def take_slot(self):
        slot = self.pool.take_slot()
        assert (slot is None) == (len(self.building) + len(self.shared) == 4)
        if slot is not None:
            self.building.append(slot)

    @precondition(lambda self: self.building)
    @rule(share=strategies.booleans())
    def end_building(self, share):
        slot = self.building.pop()
        if share:
            self.pool.share_slot(slot)
            self.shared[slot] = 1
        else:
            self.pool.drop_slot(slot)

    @precondition(lambda self: self.shared)
    @rule(data=strategies.data(), add=strategies.booleans())
    def change_references(self, data, add):
        slot = data.draw(strategies.sampled_from(sorted(self.shared)))
        if add:
            self.pool.retain(slot)
            self.shared[slot] += 1
            return
        self.shared[slot] -= 1
        assert self.pool.release(slot) == (self.shared[slot] == 0)
        if not self.shared[slot]:
            del self.shared[slot]

    @rule()
    def action_is_always_allocatable_up_to_the_reserve(self):
        free = self.pool.num_free_runs
        run = self.pool.take_run()
        assert (run is not None) == (free > 0)
        assert run is not None or len(self.runs) >= 2
        if run is not None:
            self.runs.append(run)

    @precondition(lambda self: self.runs)
    @rule()
    def free_run(self):
        self.pool.free_run(self.runs.pop(0))

    @rule()
    def take_block(self):
        # What an unfragmented pool would have: all runs but the actions' and their reserve.
        available = (8 - max(2, len(self.runs))) * 3 - len(self.blocks)
        assert self.pool.num_available_text == available
        block = self.pool.take_block()
        assert (block is not None) == (available > 0)
        if block is not None:
            assert block not in self.blocks
            self.blocks.append(block)

    @precondition(lambda self: self.blocks)
    @rule(data=strategies.data())
    def free_block(self, data):
        index = data.draw(strategies.integers(0, len(self.blocks) - 1))
        self.pool.free_block(self.blocks.pop(index))

    @invariant()
    def books_are_right(self):
        self.pool.check()
        assert self.pool.num_free_runs >= 2 - len(self.runs)
        assert self.pool.num_text == len(self.blocks)
        assert self.pool.num_owned == len(self.blocks) + 3 * (len(self.runs) + len(self.building))
        assert self.pool.num_shared == 3 * len(self.shared)


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
