# SPDX-License-Identifier: Apache-2.0
"""The KV memory is whole under any sequence of requests, observations and exhaustion."""

from hypothesis import settings, strategies
from hypothesis.stateful import initialize, invariant, precondition, rule, RuleBasedStateMachine
from kv_cases import begin, make_manager, PREFIX_TOKENS
import pytest

from oxygen_ros.engine.errors import PoolError
from oxygen_ros.engine.kv.memory_report import memory_report
from oxygen_ros.types import TaskType

MS = 1_000_000
BLOCK_SIZE = 16
MAX_AGE_NS = 300 * MS


class ManagerMachine(RuleBasedStateMachine):
    """The manager as the engine uses it, with every page marked by its holder in the real storage.

    A request is a bound text context; its mark is its number, negative so that it differs from all
    prefix ids.
    """

    def __init__(self):
        super().__init__()
        self.now_ns = 0
        self.builder = self.action = self.next_action = None
        self.requests, self.lost = {}, []  # number -> context, in order of priority; dead prefixes
        self.num_observations = self.num_requests = 0

    @initialize(slots=strategies.integers(2, 5), blocks=strategies.integers(1, 40))
    def configure(self, slots, blocks):
        self.kv = make_manager(
            max_live_prefixes=slots,
            num_text_blocks=blocks,
            text_prefix_max_age_s=MAX_AGE_NS * 1e-9,
        )
        self.pool, self.num_slots = self.kv.pool, slots
        self.pointer = self.kv.cache.data.data_ptr()
        self.observations_move_on(3)

    def mark(self, blocks, value):
        self.kv.cache.data[:, :, list(blocks)] = value

    def text_room(self):
        """Blocks that text could take if nothing were ever lost to fragmentation."""
        kept = max(self.pool.num_action_runs, self.pool.reserved_runs)
        return (self.pool.num_runs - kept) * self.pool.action_stride - self.text_blocks()

    def text_blocks(self):
        return sum(context.num_blocks for context in self.requests.values())

    @rule(elapsed_ms=strategies.integers(1, 250))
    def time_passes(self, elapsed_ms):
        self.now_ns += elapsed_ms * MS

    @rule(stages=strategies.integers(1, 6))
    def observations_move_on(self, stages):
        """A prefix is begun, complete, and read by the action; any rule may come in between."""
        for _ in range(stages):
            if self.builder is not None:
                self.prefix_is_complete()
            elif self.next_action is not None:
                self.action_moves_on()
            else:
                self.new_observation()

    def new_observation(self):
        held = {prefix.slot for prefix in self.kv.live_prefixes()}
        assert self.kv.can_begin_prefix() == (len(held) < self.num_slots)
        self.num_observations += 1
        self.builder = begin(self.kv, self.num_observations, self.now_ns)
        assert (self.builder is None) == (len(held) == self.num_slots)

    def prefix_is_complete(self):
        former = self.kv.newest
        self.mark(self.builder.block_table, self.builder.provenance.observation_id)
        prefix = self.kv.register_immutable_prefix(self.builder)
        self.builder = None
        # An action context is always to be had: this raises when there is no run for it.
        self.next_action = self.kv.bind_context(TaskType.PHYSICAL_ACTION, prefix, self.now_ns)
        self.mark(self.next_action.block_table, -1000 - prefix.observation_id)
        if former is not None and former not in self.kv.live_prefixes():
            self.lost.append(former)

    def action_moves_on(self):
        if self.action is not None:
            self.action.release()
        self.action, self.next_action = self.next_action, None

    @precondition(lambda self: self.num_observations > 4)
    @rule(far=strategies.integers(0, 3))
    def time_jumps(self, far):
        if far == 0:
            self.forget_observations()

    def forget_observations(self):
        if self.builder is not None:
            self.kv.abandon(self.builder)
            self.builder = None
        if self.next_action is not None:
            self.next_action.release()
            self.next_action = None
        self.kv.forget_newest()

    @rule(requests=strategies.integers(1, 3))
    def add_and_join_or_pin_or_wait(self, requests):
        for _ in range(requests):
            self.add()

    def add(self):
        pinned = {context.prefix.slot: context.prefix for context in self.requests.values()}
        chosen = self.kv.choose_text_prefix(self.now_ns)
        newest = self.kv.newest
        if chosen is None:
            assert newest is None or len(pinned) == max(1, self.num_slots - 2)
            return
        assert chosen is newest or pinned[chosen.slot] is chosen
        assert chosen is newest or self.now_ns - chosen.steady_ns < MAX_AGE_NS
        self.num_requests += 1
        self.requests[self.num_requests] = self.kv.bind_context(
            TaskType.DIALOGUE, chosen, self.now_ns
        )

    @precondition(lambda self: self.requests)
    @rule(data=strategies.data(), tokens=strategies.integers(1, 70))
    def grow_and_preempt_when_exhausted(self, data, tokens):
        number = data.draw(strategies.sampled_from(sorted(self.requests)))
        context = self.requests[number]
        if self.kv.refusal(context.num_tokens + tokens):
            before = self.pool.num_free
            assert not context.extend(tokens)
            assert self.pool.num_free == before
            return
        missing = -(-(context.num_tokens + tokens) // BLOCK_SIZE) - context.num_blocks
        fits = missing <= self.text_room()
        victims = sorted(other for other in self.requests if other > number)
        while not context.extend(tokens):
            assert missing > self.text_room()  # never a failure while enough blocks are free
            if not victims:
                return
            self.requests[victims.pop()].reset()
        assert not fits or len(victims) == sum(other > number for other in self.requests)
        context.advance(tokens)
        self.mark(context.writable_blocks(0), -number)

    @precondition(lambda self: self.requests)
    @rule(data=strategies.data())
    def finish_or_cancel(self, data):
        context = self.requests.pop(data.draw(strategies.sampled_from(sorted(self.requests))))
        context.release()
        with pytest.raises(PoolError, match='once'):
            context.release()

    @precondition(lambda self: self.lost)
    @rule()
    def bind_to_what_is_gone(self):
        with pytest.raises(PoolError):
            self.kv.bind_context(TaskType.DIALOGUE, self.lost[-1], self.now_ns)

    @invariant()
    def memory_is_whole(self):
        self.kv.check_integrity()
        pool = self.pool
        assert pool.num_free + pool.num_owned + pool.num_shared == pool.num_blocks
        assert pool.num_free_runs >= pool.reserved_runs - pool.num_action_runs
        assert pool.num_text == self.text_blocks()
        assert pool.num_available_text == self.text_room()
        actions = [context for context in (self.action, self.next_action) if context is not None]
        assert set(self.kv.contexts()) == {*actions, *self.requests.values()}

    @invariant()
    def every_page_holds_what_its_holder_wrote(self):
        assert self.kv.cache.data.data_ptr() == self.pointer
        for prefix in self.kv.live_prefixes():
            for view in self.kv.cache.prefix_view(1, prefix.first_block, PREFIX_TOKENS):
                assert (view == prefix.observation_id).all()
        for context in (self.action, self.next_action):
            if context is not None:
                pages = self.kv.cache.data[:, :, list(context.block_table)]
                assert (pages == -1000 - context.prefix.observation_id).all()
        for number, context in self.requests.items():
            written = list(context.block_table[: -(-context.num_tokens // BLOCK_SIZE)])
            assert (self.kv.cache.data[:, :, written] == -number).all()

    @invariant()
    def an_observation_can_be_built_unless_only_two_slots_are_there(self):
        if self.builder is None and self.next_action is None and self.num_slots > 2:
            assert self.kv.can_begin_prefix()

    @invariant()
    def the_report_adds_up(self):
        report = memory_report(self.kv, self.now_ns)
        assert report.bytes_referenced + report.bytes_free <= report.bytes_total
        states = report.blocks_free, report.blocks_owned, report.blocks_shared
        assert sum(states) == report.blocks_total
        assert sum(report.prefix_readers) == len(tuple(self.kv.contexts()))
        assert report.bytes_isolated >= report.bytes_referenced

    def teardown(self):
        if not hasattr(self, 'kv'):
            return
        self.forget_observations()
        for context in [*self.requests.values(), *([self.action] if self.action else [])]:
            context.release()
        assert self.pool.num_free == self.pool.num_blocks
        assert self.kv.live_prefixes() == []


TestManagerMachine = ManagerMachine.TestCase
TestManagerMachine.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
