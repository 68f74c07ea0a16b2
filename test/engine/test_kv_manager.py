# SPDX-License-Identifier: Apache-2.0
"""Prefixes registered once and shared, contexts bound and released, and what is reported of it."""

from dataclasses import replace
import random

from kv_cases import begin, build, make_manager, provenance, SPEC
import pytest
import torch

from oxygen_ros.engine.config import KVConfig
from oxygen_ros.engine.errors import NeverFitsError, PoolError
from oxygen_ros.engine.kv.manager import KVCacheManager
from oxygen_ros.engine.kv.memory_report import memory_report, reduction_limit
from oxygen_ros.types import TaskType

S = 1_000_000_000
ACTION, DIALOGUE = TaskType.PHYSICAL_ACTION, TaskType.DIALOGUE


def test_a_prefix_longer_than_a_slot_is_refused():
    with pytest.raises(NeverFitsError, match='needed 100 blocks, available 8'):
        make_manager().begin_prefix(
            1600, num_visual_tokens=1600, steady_ns=0, provenance=provenance(1)
        )


def test_a_prefix_lives_as_long_as_its_readers():
    cache = make_manager()
    first = build(cache, 1)
    context = cache.bind_context(DIALOGUE, first, 0)
    build(cache, 2)
    assert cache.pool.refs(first.slot) == 1
    context.release()
    assert cache.pool.refs(first.slot) == 0
    with pytest.raises(PoolError, match='once'):
        context.release()


def test_new_text_joins_a_young_pinned_prefix_and_else_pins_the_newest():
    cache = make_manager(text_prefix_max_age_s=0.5)
    first = build(cache, 1, 0)
    assert cache.choose_text_prefix(0) is first
    cache.bind_context(DIALOGUE, first, 0)
    second = build(cache, 2, int(0.1 * S))
    assert cache.choose_text_prefix(int(0.4 * S)) is first
    assert cache.choose_text_prefix(int(0.6 * S)) is second


def test_text_waits_when_pinning_would_leave_no_slot_to_build_in():
    cache = make_manager(max_live_prefixes=4, text_prefix_max_age_s=0.0)
    contexts = []
    for observation_id in (1, 2):
        prefix = build(cache, observation_id)
        contexts.append(cache.bind_context(DIALOGUE, cache.choose_text_prefix(S), 0))
        assert contexts[-1].prefix is prefix
    build(cache, 3)
    assert cache.choose_text_prefix(S) is None
    assert cache.can_begin_prefix()
    contexts[0].release()
    assert cache.choose_text_prefix(S).observation_id == 3


def test_text_joins_the_newest_of_two_pins_when_the_first_is_too_old():
    cache = make_manager(max_live_prefixes=4, text_prefix_max_age_s=0.5)
    build(cache, 1, 0)
    cache.bind_context(DIALOGUE, cache.choose_text_prefix(0), 0)
    second = build(cache, 2, S)
    cache.bind_context(DIALOGUE, cache.choose_text_prefix(S), S)
    build(cache, 3, int(1.1 * S))
    assert cache.choose_text_prefix(int(1.4 * S)) is second
    assert cache.choose_text_prefix(int(1.6 * S)) is None


def test_text_joins_the_newest_prefix_of_all_whatever_its_age_when_it_is_pinned():
    cache = make_manager(max_live_prefixes=3, text_prefix_max_age_s=0.0)
    newest = build(cache, 1, 0)
    cache.bind_context(DIALOGUE, newest, 0)
    assert cache.choose_text_prefix(10 * S) is newest


def test_blocks_are_taken_all_or_none():
    cache = make_manager(num_text_blocks=6)
    context = cache.bind_context(DIALOGUE, build(cache, 1), 0)
    assert not context.extend(1000)
    assert context.num_blocks == 0
    assert context.extend(17)
    assert context.num_blocks == 2
    with pytest.raises(PoolError, match='own tokens'):
        context.writable_blocks(40)


def test_a_reset_context_gives_its_blocks_back_and_keeps_its_prefix():
    cache = make_manager()
    prefix = build(cache)
    context = cache.bind_context(DIALOGUE, prefix, 0)
    context.extend(40)
    context.advance(40)
    context.reset()
    assert (context.num_blocks, context.num_tokens, cache.pool.num_text) == (0, 0, 0)
    build(cache, 2)
    assert cache.pool.refs(prefix.slot) == 1
    assert context.extend(40)


def test_two_slots_pin_the_newest_and_observations_wait_for_the_request():
    cache = make_manager(max_live_prefixes=2, text_prefix_max_age_s=0.0)
    build(cache, 1)
    context = cache.bind_context(DIALOGUE, cache.choose_text_prefix(S), 0)
    build(cache, 2)
    assert not cache.can_begin_prefix()
    assert begin(cache, 3) is None
    assert cache.choose_text_prefix(S) is None
    context.release()
    assert cache.can_begin_prefix()


def test_a_private_prefix_has_one_reader_and_goes_with_it():
    cache = make_manager(sharing='isolated')
    newest = build(cache, 1)
    context = cache.register_private_prefix(begin(cache, 1), 0, DIALOGUE)
    assert cache.newest is newest
    assert cache.pool.refs(context.prefix.slot) == 1
    assert [prefix.prefix_id for prefix in cache.live_prefixes()] == [1, 2]
    cache.check_integrity()
    context.release()
    assert cache.live_prefixes() == [newest]


def test_a_thousand_chunks_and_a_hundred_requests_stay_in_the_same_storage():
    cache = make_manager(num_text_blocks=24)
    generator = random.Random(0)
    pointer, num_bytes = cache.cache.data.data_ptr(), cache.cache.data.nbytes
    action, live, chunks, requests = None, [], 0, 0
    runs, prefix_pointers = set(), set()
    while chunks < 1000 or requests < 100:
        now_ns = chunks * S // 50
        if chunks % 10 == 0:
            prefix = build(cache, chunks // 10 + 1, now_ns)
            prefix_pointers.add(cache.cache.prefix_view(0, prefix.first_block, 1)[0].data_ptr())
            successor = cache.bind_context(ACTION, prefix, now_ns)
            if action is not None:
                action.release()
            action = successor
        runs.add(action.writable_blocks(48))
        chunks += 1
        if chunks % 8 == 0 and (chosen := cache.choose_text_prefix(now_ns)) is not None:
            live.append(cache.bind_context(DIALOGUE, chosen, now_ns))
            requests += 1
        for context in list(live):
            if context.extend(8):
                context.advance(8)
            if context.num_tokens > generator.randrange(20, 100):
                context.release()
                live.remove(context)
        cache.check_integrity()
    assert (cache.cache.data.data_ptr(), cache.cache.data.nbytes) == (pointer, num_bytes)
    assert len(runs) <= 4 and len(prefix_pointers) <= 4  # they go round, they do not grow
    for context in [action, *live]:
        context.release()
    cache.forget_newest()
    assert cache.pool.num_free == cache.pool.num_blocks


def test_reading_a_prefix_is_a_view_of_the_one_allocation():
    cache = make_manager()
    prefix = build(cache)
    data = cache.cache.data
    for layer in range(2):
        for part, view in enumerate(cache.cache.prefix_view(layer, prefix.first_block, 100)):
            assert view.shape == (100, 1, 4)
            assert view.data_ptr() == data[layer, part, prefix.first_block].data_ptr()
            view[99] = 7.0
            assert (data[layer, part, prefix.first_block + 6, 3] == 7.0).all()


def test_the_report_counts_each_page_once_and_isolated_copies_per_reader():
    cache = make_manager()
    prefix = build(cache, 1)
    action = cache.bind_context(ACTION, prefix, 0)
    text = cache.bind_context(DIALOGUE, prefix, 0)
    text.extend(20)
    report = memory_report(cache, S)
    block = cache.cache.bytes_per_block
    assert report.bytes_prefix == 7 * block
    assert report.bytes_text == 2 * block
    assert report.bytes_action == action.num_blocks * block
    assert report.bytes_isolated - report.bytes_referenced == 7 * block
    assert report.prefix_readers == (2,)
    assert report.prefix_age_s == (1.0,)


def test_a_prefix_that_nobody_reads_yet_is_one_copy_in_isolated_caches_too():
    cache = make_manager()
    build(cache)
    report = memory_report(cache, 0)
    assert report.bytes_isolated == report.bytes_prefix == 7 * cache.cache.bytes_per_block
    assert report.prefix_readers == (0,)
    # What is neither used nor free is the tail of the slot.
    assert report.bytes_total - report.bytes_free == 8 * cache.cache.bytes_per_block


def test_the_worked_example_of_the_documentation_is_what_happens():
    spec = replace(SPEC, tokens_per_image=256, num_cameras=4, max_action_prompt_tokens=32)
    cache = KVCacheManager(spec, KVConfig(block_size=8), torch.device('cpu'), torch.float32)
    rows = []

    def note(*_):
        report = memory_report(cache, 0)
        rows.append(
            (
                report.blocks_free,
                report.blocks_owned,
                report.blocks_shared,
                report.bytes_isolated // cache.cache.bytes_per_block,
            )
        )

    note()
    builder = begin(cache, num_tokens=1024)
    note()
    prefix = cache.register_immutable_prefix(builder)
    note()
    action = cache.bind_context(ACTION, prefix, 0)
    note()
    dialogue = cache.bind_context(DIALOGUE, prefix, 0)
    note(dialogue.extend(76))
    scene_graph = cache.bind_context(TaskType.SCENE_GRAPH, prefix, 0)
    note(scene_graph.extend(137))
    newest = cache.register_immutable_prefix(begin(cache, 2, num_tokens=1024))
    cache.bind_context(ACTION, newest, 0)
    note(action.release())
    note(dialogue.release())
    note(scene_graph.release())
    assert rows == [
        (785, 0, 0, 0),
        (657, 128, 0, 0),
        (657, 0, 128, 128),
        (650, 7, 128, 135),
        (640, 17, 128, 273),
        (622, 35, 128, 419),
        (494, 35, 256, 419),
        (504, 25, 256, 281),
        (650, 7, 128, 135),
    ]


def test_the_limit_is_two_thirds_for_a_long_prefix():
    assert reduction_limit(1024, 208) == pytest.approx(0.624, abs=5e-4)
    assert reduction_limit(10**6, 208) == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize(
    ('field', 'value', 'message'),
    [
        ('sharing', 'both', "baseline.kv_sharing: expected one of shared, isolated, got 'both'"),
        ('block_size', 0, 'kv.block_size: expected 1 to 1024, got 0'),
        ('max_live_prefixes', 1, 'kv.max_live_prefixes: expected 2 to 64, got 1'),
        ('num_text_blocks', 0, 'kv.num_text_blocks: expected 1 to 1e'),
        ('reserved_action_contexts', 1, 'reserved_action_contexts: expected at least 2, got 1'),
        ('text_prefix_max_age_s', -1.0, 'kv.text_prefix_max_age_s: expected 0 to 60, got -1'),
        ('text_prefix_max_age_s', float('inf'), 'expected 0 to 60, got inf'),
        ('text_prefix_max_age_s', float('nan'), 'expected 0 to 60, got nan'),
    ],
)
def test_a_bad_setting_names_parameter_and_value(field, value, message):
    with pytest.raises(ValueError, match=message):
        KVConfig(**{field: value})
