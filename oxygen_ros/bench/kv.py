# SPDX-License-Identifier: Apache-2.0
"""KV memory, measured: shared against isolated caches, at the peak of one frame and over a steady
load.
"""

from __future__ import annotations

import random
from typing import Any

from rich.console import Console
from rich.table import Table

from ..engine.config import EngineConfig, KVConfig, SchedulerConfig
from ..engine.kv.memory_report import memory_report, reduction_limit
from ..engine.model import VLAModel
from ..models.tiny import TinyModel
from ..models.tiny_config import TinyConfig
from ..types import TaskType
from .workbench import MS, SyntheticSensors, Workbench

DIALOGUE_TOKENS = 64
SCENE_GRAPH_TOKENS = 128
NUM_CAMERAS = 4
IMAGE_PX = {1024: 224, 4096: 448}  # 4 cameras of (px / 14)^2 tokens
STEADY_S = 30


def _model(visual_tokens: int) -> TinyModel:
    return TinyModel(TinyConfig(num_cameras=NUM_CAMERAS, image_px=IMAGE_PX[visual_tokens]))


def _storage_bytes(bench: Workbench) -> int:
    """Bytes of K/V storage that live contexts refer to, each place in memory once (by its data
    pointer).
    """
    cache = bench.engine.manager.cache
    block_size = bench.engine.manager.config.block_size
    blocks: set[int] = set()
    for context in bench.engine.manager.contexts():
        prefix = context.prefix
        blocks.update(
            range(prefix.first_block, prefix.first_block + -(-prefix.num_tokens // block_size))
        )
        blocks.update(context.block_table)
    pointers = {
        layer[part, block].data_ptr()
        for layer in cache.data
        for part in (0, 1)
        for block in blocks
    }
    return len(pointers) * cache.data[0, 0, 0].nbytes


def measure_peak(visual_tokens: int, sharing: str) -> tuple[int, int]:
    """Return `peak` of the model tiny with so many visual tokens."""
    return peak(_model(visual_tokens), sharing)


def peak(model: VLAModel, sharing: str) -> tuple[int, int]:
    """Run three tasks on one frame; return the most bytes referenced at one time, and the private
    tokens then.
    """
    # A slice of one unit: the look at the goals comes after every token.
    config = EngineConfig(
        kv=KVConfig(sharing=sharing, max_live_prefixes=5),
        scheduler=SchedulerConfig(micro_slice_s=1e-9),
    )
    sensors = SyntheticSensors(
        model.spec.num_cameras, model.spec.action_dim, image_px=112, num_observations=1
    )
    bench = Workbench(model, config, sensors)
    bench.engine.set_instruction('put the red cup on the blue plate')
    bench.run_until(lambda: bool(bench.chunks))
    goals = {
        bench.ask(max_tokens=DIALOGUE_TOKENS + 1): DIALOGUE_TOKENS,
        bench.ask(
            'objects:', max_tokens=SCENE_GRAPH_TOKENS + 1, task=TaskType.SCENE_GRAPH
        ): SCENE_GRAPH_TOKENS,
    }

    def rest_at_goals() -> None:
        for request in bench.engine.text.live():
            if len(request.tokens) >= goals[request.request_id]:
                bench.engine.text.pause(request.request_id, True)

    # Each rests when it has its tokens, so that all private tokens are there at one time: the peak
    # of the frame.
    bench.on_poll = rest_at_goals
    bench.run_until(lambda: all(request.paused for request in bench.engine.text.live()))
    contexts = tuple(bench.engine.manager.contexts())
    assert len(contexts) == 3
    private = sum(context.num_tokens for context in contexts) + model.spec.action_suffix_tokens
    return _storage_bytes(bench), private


def measure_steady(seconds: int = STEADY_S, seed: int = 0) -> dict[str, Any]:
    """Run a steady load on virtual time; return time-averaged bytes and the limit for the frames
    pinned.

    Observations at 10 Hz, text requests arriving at random; isolated: the same contexts, each with
    a copy of its own.
    """
    generator = random.Random(seed)
    model = _model(1024)
    bench = Workbench(
        model, EngineConfig(), SyntheticSensors(NUM_CAMERAS, image_px=112, period_ns=100 * MS)
    )
    next_request_ns = 0
    totals = dict.fromkeys(('shared', 'isolated', 'tokens_shared', 'tokens_isolated'), 0.0)
    moments = frames = 0
    while bench.clock.now_ns() < seconds * 1_000 * MS:
        now_ns = bench.clock.now_ns()
        if now_ns >= next_request_ns:
            task = TaskType.SCENE_GRAPH if generator.random() < 0.25 else TaskType.DIALOGUE
            bench.ask(max_tokens=generator.randint(16, SCENE_GRAPH_TOKENS), task=task)
            next_request_ns = now_ns + round(generator.expovariate(1 / (30 * MS)))
        bench.cycle()
        bench.events.clear()
        report = memory_report(bench.engine.manager, now_ns)
        contexts = tuple(bench.engine.manager.contexts())
        pinned = {context.prefix.slot: context.prefix.num_tokens for context in contexts}
        private = sum(context.num_tokens for context in contexts) + model.spec.action_suffix_tokens
        totals['shared'] += report.bytes_referenced
        totals['isolated'] += report.bytes_isolated
        totals['tokens_shared'] += sum(pinned.values()) + private
        totals['tokens_isolated'] += (
            sum(context.prefix.num_tokens for context in contexts) + private
        )
        moments += 1
        frames += len(pinned)
    return {
        'bytes': {'shared': totals['shared'] / moments, 'isolated': totals['isolated'] / moments},
        'reduction': 1.0 - totals['shared'] / totals['isolated'],
        'limit': 1.0 - totals['tokens_shared'] / totals['tokens_isolated'],
        'frames_pinned': frames / moments,
        'seconds': seconds,
    }


def run() -> dict[str, Any]:
    """Measure, print, and return the figures."""
    console = Console()
    result: dict[str, Any] = {'peak': {}}
    table = Table(
        title='KV cache of three tasks on one frame: action, dialogue of 64, graph of 128 tokens'
    )
    for column in ('visual tokens', 'isolated', 'shared', 'less', 'limit 1-(P+s)/(3P+s)', 's'):
        table.add_column(column, justify='right')
    for tokens in IMAGE_PX:
        console.print(f'peak, {tokens} visual tokens ...', style='dim')
        isolated, _ = measure_peak(tokens, 'isolated')
        shared, private = measure_peak(tokens, 'shared')
        limit = reduction_limit(tokens, private)
        reduction = 1.0 - shared / isolated
        result['peak'][str(tokens)] = {
            'bytes': {'isolated': isolated, 'shared': shared},
            'reduction': reduction,
            'limit': limit,
            'private_tokens': private,
        }
        table.add_row(
            str(tokens),
            f'{isolated:,} B',
            f'{shared:,} B',
            f'{100 * reduction:.2f} %',
            f'{100 * limit:.2f} %',
            str(private),
        )
    console.print(table)
    console.print(f'steady load, {STEADY_S} s of virtual time ...', style='dim')
    steady = result['steady'] = measure_steady()
    console.print(
        f'steady: {steady["bytes"]["shared"]:,.0f} B shared, '
        f'{steady["bytes"]["isolated"]:,.0f} B isolated, '
        f'{100 * steady["reduction"]:.2f} % less; limit for the '
        f'{steady["frames_pinned"]:.1f} frames pinned '
        f'on average {100 * steady["limit"]:.2f} %'
    )
    return result
