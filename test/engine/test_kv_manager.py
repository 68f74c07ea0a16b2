"""Prefixes registered once, contexts bound and released, under any sequence of requests."""
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
import pytest
import torch

from harness import MS, FakeSensors, Harness, tiny
from oxygen_ros.engine.errors import NeverFitsError, PoolError, PrefixImmutableError
from oxygen_ros.engine.manager import KVCacheManager, KVConfig
from oxygen_ros.engine.memory_report import memory_report, reduction_limit
from oxygen_ros.types import FinishReason, Provenance, TaskType

S = 1_000_000_000


def manager(**config):
    config = {'block_size': 16, **config}
    model = tiny()
    return KVCacheManager(model.spec, KVConfig(**config), torch.device('cpu'), torch.float32)


def provenance(observation_id):
    return Provenance(observation_id, 0, ('a',), (0,), 0, '')


def build(cache, observation_id, now_ns=0):
    builder = cache.begin_prefix(100, num_visual_tokens=100, steady_ns=now_ns, provenance=provenance(observation_id))
    return cache.register_immutable_prefix(builder, now_ns)


def test_a_registered_prefix_can_be_written_by_nobody():
    cache = manager()
    builder = cache.begin_prefix(100, num_visual_tokens=100, steady_ns=0, provenance=provenance(1))
    assert len(builder.block_table) == cache.pool.slot_blocks
    prefix = cache.register_immutable_prefix(builder, 0)
    with pytest.raises(PrefixImmutableError):
        builder.block_table  # noqa: B018
    context = cache.bind_context(TaskType.DIALOGUE, prefix, 0)
    context._blocks = [prefix.first_block]
    with pytest.raises(PrefixImmutableError, match='registered prefix'):
        context.writable_blocks(1)


def test_a_prefix_longer_than_a_slot_is_refused():
    with pytest.raises(NeverFitsError, match='needed 100 blocks, available 8'):
        manager().begin_prefix(1600, num_visual_tokens=1600, steady_ns=0, provenance=provenance(1))


def test_a_prefix_lives_as_long_as_its_readers():
    cache = manager()
    first = build(cache, 1)
    context = cache.bind_context(TaskType.DIALOGUE, first, 0)
    build(cache, 2)
    assert cache.pool.refs(first.slot) == 1
    context.release()
    assert cache.pool.refs(first.slot) == 0
    with pytest.raises(PoolError, match='once'):
        context.release()


def test_new_text_joins_a_young_pinned_prefix_and_else_pins_the_newest():
    cache = manager(text_prefix_max_age_s=0.5)
    first = build(cache, 1, 0)
    assert cache.choose_text_prefix(0) is first
    cache.bind_context(TaskType.DIALOGUE, first, 0)
    second = build(cache, 2, int(0.1 * S))
    assert cache.choose_text_prefix(int(0.4 * S)) is first
    assert cache.choose_text_prefix(int(0.6 * S)) is second


def test_text_waits_when_pinning_would_leave_no_slot_to_build_in():
    cache = manager(max_live_prefixes=4, text_prefix_max_age_s=0.0)
    contexts = []
    for observation_id in (1, 2):
        prefix = build(cache, observation_id)
        contexts.append(cache.bind_context(TaskType.DIALOGUE, cache.choose_text_prefix(S), 0))
        assert contexts[-1].prefix is prefix
    build(cache, 3)
    assert cache.choose_text_prefix(S) is None
    assert cache.can_begin_prefix()
    contexts[0].release()
    assert cache.choose_text_prefix(S).observation_id == 3


def test_blocks_are_taken_all_or_none():
    cache = manager(num_text_blocks=6)
    context = cache.bind_context(TaskType.DIALOGUE, build(cache, 1), 0)
    assert not context.extend(1000)
    assert context.num_blocks == 0
    assert context.extend(17)
    assert context.num_blocks == 2
    with pytest.raises(PoolError, match='own tokens'):
        context.writable_blocks(40)


def test_the_report_counts_each_page_once_and_isolated_copies_per_reader():
    cache = manager()
    prefix = build(cache, 1)
    action = cache.bind_context(TaskType.PHYSICAL_ACTION, prefix, 0)
    text = cache.bind_context(TaskType.DIALOGUE, prefix, 0)
    text.extend(20)
    report = memory_report(cache, S)
    block = cache.cache.bytes_per_block
    assert report.bytes_prefix == 7 * block
    assert report.bytes_text == 2 * block
    assert report.bytes_action == action.num_blocks * block
    assert report.bytes_isolated - report.bytes_referenced == 7 * block
    assert report.prefix_readers == (2,)
    assert report.prefix_age_s == (1.0,)


def test_the_limit_is_two_thirds_for_a_long_prefix():
    assert reduction_limit(1024, 208) == pytest.approx(0.624, abs=5e-4)
    assert reduction_limit(10**6, 208) == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize('field, value', [('sharing', 'both'), ('block_size', 0), ('max_live_prefixes', 1)])
def test_a_bad_setting_names_field_and_value(field, value):
    with pytest.raises(ValueError, match=f'kv.{field}: expected .*got {value}'):
        KVConfig(**{field: value})


class EngineMachine(RuleBasedStateMachine):
    """Any sequence of requests, observations, cancels and exhaustion keeps memory whole.

    The model is real; memory is short, so that requests are preempted, and slots are few, so that they wait.
    """

    def __init__(self):
        super().__init__()
        self.harness = Harness(sensors=FakeSensors(2, period_ns=60 * MS), max_text_tokens=48, max_admitted=5,
                               kv=KVConfig(block_size=4, num_text_blocks=20, max_live_prefixes=3,
                                           text_prefix_max_age_s=0.1))
        self.submitted = 0

    @rule(task=strategies.sampled_from([TaskType.DIALOGUE, TaskType.SCENE_GRAPH]), tokens=strategies.integers(1, 40))
    def add(self, task, tokens):
        self.submitted += 1
        self.harness.ask('q', max_tokens=tokens, task=task, request_id=self.submitted)

    @rule(cycles=strategies.integers(1, 6))
    def grow_and_see_new_observations(self, cycles):
        self.harness.run(cycles)

    @rule(units=strategies.integers(1, 3))
    def suspend(self, units):
        self.harness.engine.scheduler._micro_slice_ns = units * MS

    @precondition(lambda self: self.submitted)
    @rule(data=strategies.data())
    def cancel(self, data):
        request_id = data.draw(strategies.integers(1, self.submitted))
        had_ended = request_id in self.harness.results
        assert self.harness.engine.cancel_text(request_id) != had_ended
        assert had_ended or self.harness.results[request_id].finish_reason is FinishReason.CANCELLED

    @rule()
    def time_jumps(self):
        self.harness.engine.reset_observations()

    @invariant()
    def memory_is_whole_and_an_action_fits(self):
        engine = self.harness.engine
        engine.check_integrity()
        pool = engine.manager.pool
        assert pool.num_action_runs <= 2
        assert len(pool._free_runs) >= pool.reserved_runs - pool.num_action_runs

    def teardown(self):
        engine = self.harness.engine
        engine.stop()
        engine.check_integrity()
        assert engine.manager.pool.num_free == engine.manager.pool.num_blocks
        assert sorted(self.harness.results) == list(range(1, self.submitted + 1))


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=12, stateful_step_count=25, deadline=None,
                                      suppress_health_check=list(HealthCheck))
