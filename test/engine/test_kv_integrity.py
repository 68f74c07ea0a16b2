# SPDX-License-Identifier: Apache-2.0
"""Misuse of the KV memory is an error that changes nothing, and damage is seen."""

from kv_cases import begin, build, make_manager
import pytest

from oxygen_ros.engine.errors import PoolError, PrefixImmutableError
from oxygen_ros.types import TaskType

ACTION, DIALOGUE = TaskType.PHYSICAL_ACTION, TaskType.DIALOGUE


def test_a_registered_prefix_can_be_written_by_nobody():
    cache = make_manager()
    builder = begin(cache)
    assert len(builder.block_table) == cache.pool.slot_blocks
    prefix = cache.register_immutable_prefix(builder)
    with pytest.raises(PrefixImmutableError):
        builder.block_table  # noqa: B018
    context = cache.bind_context(DIALOGUE, prefix, 0)
    context._blocks = [prefix.first_block]
    with pytest.raises(PrefixImmutableError, match='registered prefix'):
        context.writable_blocks(1)


def test_a_builder_is_closed_once_and_never_touches_the_next_holder_of_its_slot():
    cache = make_manager()
    builder = begin(cache)
    cache.register_immutable_prefix(builder)
    cache.forget_newest()
    heir = begin(cache, 2)
    assert heir.slot == builder.slot
    with pytest.raises(PoolError, match='being built'):
        cache.abandon(builder)
    with pytest.raises(PrefixImmutableError):
        cache.register_immutable_prefix(builder)
    cache.check_integrity()
    cache.abandon(heir)
    with pytest.raises(PoolError):
        cache.abandon(heir)
    assert cache.pool.num_free == cache.pool.num_blocks


@pytest.mark.parametrize('task', [ACTION, DIALOGUE])
@pytest.mark.parametrize('has_heir', [False, True])
def test_nothing_is_bound_to_a_prefix_that_is_gone_and_nothing_is_taken(task, has_heir):
    cache = make_manager()
    gone = build(cache, 1)
    cache.forget_newest()
    if has_heir:
        assert build(cache, 2).slot == gone.slot
    before = cache.pool.num_free
    with pytest.raises(PoolError, match='prefix 1: expected a live one'):
        cache.bind_context(task, gone, 0)
    assert cache.pool.num_free == before
    cache.check_integrity()


def test_one_action_context_too_many_is_an_error_that_takes_nothing():
    cache = make_manager(num_text_blocks=3)
    prefix = build(cache)
    text = cache.bind_context(DIALOGUE, prefix, 0)
    assert text.extend(48)
    for _ in range(2):
        cache.bind_context(ACTION, prefix, 0)
    before = cache.pool.num_free, cache.pool.refs(prefix.slot)
    with pytest.raises(PoolError, match='action contexts: expected at most 2'):
        cache.bind_context(ACTION, prefix, 0)
    assert before == (cache.pool.num_free, cache.pool.refs(prefix.slot))
    cache.check_integrity()


def test_a_released_context_takes_no_blocks():
    cache = make_manager()
    context = cache.bind_context(DIALOGUE, build(cache), 0)
    context.release()
    with pytest.raises(PoolError, match='released'):
        context.extend(1)
    with pytest.raises(PoolError):
        context.writable_blocks(1)
    assert cache.pool.num_text == 0


def tamper_with_a_count(cache, context):
    cache.pool._num_text += 1


def tamper_with_a_table(cache, context):
    context._blocks.pop()


def tamper_with_two_tables(cache, context):
    context._blocks[0] = next(iter(cache.contexts())).block_table[0]


def tamper_with_a_reference(cache, context):
    cache.pool.retain(context.prefix.slot)


def tamper_with_a_holder(cache, context):
    cache._holders[context.prefix.slot] = None


def tamper_with_a_lost_run(cache, context):
    cache.pool.take_run()


def tamper_with_the_reserve(cache, context):
    while cache.pool.num_free_runs > 1:
        cache.pool._free_runs.pop()


@pytest.mark.parametrize(
    'tamper',
    [
        tamper_with_a_count,
        tamper_with_a_table,
        tamper_with_two_tables,
        tamper_with_a_reference,
        tamper_with_a_holder,
        tamper_with_a_lost_run,
        tamper_with_the_reserve,
    ],
)
def test_the_integrity_check_sees_every_kind_of_damage(tamper):
    cache = make_manager()
    prefix = build(cache)
    cache.bind_context(DIALOGUE, prefix, 0).extend(20)
    context = cache.bind_context(DIALOGUE, prefix, 0)
    context.extend(20)
    cache.check_integrity()
    tamper(cache, context)
    with pytest.raises(AssertionError):
        cache.check_integrity()
