# SPDX-License-Identifier: Apache-2.0
"""The pool over a million operations, and at a flat cost whatever its size."""

import random
import time

from oxygen_ros.engine.kv.block_pool import BlockPool


def churn(pool, num_operations, seed=0):
    """Run random operations of all kinds, to exhaustion and back, and give all back at the end.

    :return: allocations that failed with enough blocks free, and those that had to fail.
    """
    generator = random.Random(seed)
    blocks, runs, slots = [], [], []
    wrong = right = 0
    for operation in range(num_operations):
        if operation % 500 == 0:
            # Share of the pool that text wants: it moves, and the border between the classes too.
            target = generator.random() * 1.2
        choice = generator.random()
        if choice < 0.7:
            if len(blocks) < target * pool.max_text_blocks:
                enough = pool.num_available_text > 0
                block = pool.take_block()
                if block is not None:
                    blocks.append(block)
                wrong += enough and block is None
                right += not enough and block is None
            elif blocks:
                index = generator.randrange(len(blocks))
                blocks[index], blocks[-1] = blocks[-1], blocks[index]
                pool.free_block(blocks.pop())
        elif choice < 0.85:
            if runs and generator.random() < 0.5:
                pool.free_run(runs.pop(generator.randrange(len(runs))))
            elif len(runs) < pool.reserved_runs + 3:
                enough = len(runs) < pool.reserved_runs or pool.num_free_runs > 0
                run = pool.take_run()
                if run is not None:
                    runs.append(run)
                wrong += enough and run is None
                right += not enough and run is None
        elif slots and generator.random() < 0.5:
            slot = generator.choice(slots)
            if generator.random() < 0.4:
                pool.retain(slot)
                slots.append(slot)
            else:
                slots.remove(slot)
                assert pool.release(slot) == (slot not in slots)
        elif len(slots) < 20:
            enough = len(set(slots)) < pool.num_slots
            slot = pool.take_slot()
            wrong += enough and slot is None
            right += not enough and slot is None
            if slot is not None and generator.random() < 0.2:
                pool.drop_slot(slot)
            elif slot is not None:
                pool.share_slot(slot)
                slots.append(slot)
    for block in blocks:
        pool.free_block(block)
    for run in runs:
        pool.free_run(run)
    for slot in slots:
        pool.release(slot)
    return wrong, right


def test_a_million_random_operations_leak_nothing_and_never_fail_while_blocks_are_free():
    pool = BlockPool(num_slots=6, slot_blocks=12, num_runs=40, action_stride=3, reserved_runs=2)
    wrong, right = churn(pool, 1_000_000)
    assert wrong == 0
    assert right > 10_000  # the pool was full often
    pool.check()
    assert pool.num_free == pool.num_blocks
    assert pool.num_owned == pool.num_shared == 0


class Churned:
    """A half full pool, and the least CPU time that a round of operations has taken on it."""

    def __init__(self, num_blocks):
        self.pool = BlockPool(4, 16, num_blocks // 4, 4, 2)
        self.held = [self.pool.take_block() for _ in range(num_blocks // 2)]
        random.Random(0).shuffle(self.held)
        self.least_ns = None

    def measure(self):
        pool, held = self.pool, self.held
        start_ns = time.thread_time_ns()
        for index in range(4000):  # half of them from far apart, so that runs open and close
            pool.free_block(held[index % len(held)])
            held[index % len(held)] = pool.take_block()
            pool.free_run(pool.take_run())
            pool.take_slot()
            pool.share_slot(0)
            pool.release(0)
        taken_ns = time.thread_time_ns() - start_ns
        self.least_ns = min(taken_ns, self.least_ns or taken_ns)


def test_cost_per_operation_is_flat_from_a_thousand_to_a_hundred_thousand_blocks():
    small, large = Churned(1_000), Churned(100_000)
    # What else the machine does makes rounds dearer, but not every one of them.
    for _ in range(50):
        small.measure()
        large.measure()
        if large.least_ns < 5 * small.least_ns:
            break
    small.pool.check()
    large.pool.check()
    print(f'24,000 operations: {small.least_ns * 1e-6:.1f} ms on 1,000 blocks,')
    print(f'{large.least_ns * 1e-6:.1f} ms on 100,000')
    # Generous: a cost that grew with the pool would be a hundred times larger.
    assert large.least_ns < 5 * small.least_ns
