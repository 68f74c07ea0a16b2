# SPDX-License-Identifier: Apache-2.0
"""Every optimisation of the action pass and the prefill beside what it took the place of."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
import sys
import time
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.table import Table
import torch

from oxygen_ros.bench.workbench import MS, SyntheticSensors, Workbench
from oxygen_ros.engine.config import EngineConfig
from oxygen_ros.engine.model import VLAModel
from oxygen_ros.engine.scheduling.cost_model import OnlineCostModel
from oxygen_ros.engine.scheduling.work import UnitKind
from oxygen_ros.memory.scene.scene_format import SceneFormat
from oxygen_ros.memory.scene.scene_grammar import SceneGrammar
from oxygen_ros.memory.scene.token_constraint import ConstrainedVocabulary
from oxygen_ros.models.compiled import CompiledModel
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig
from oxygen_ros.runtime.work_clock import work_clock
from oxygen_ros.types import ActionChunk, SamplingParams, TaskType

from . import slower
from .command_line import main, parser

ROUNDS = 60
NUM_CAMERAS = 3
NUM_SCENES = 12
MAX_SCENE_TOKENS = 400
TOLERANCE = 1e-5  # of the chunks, against those of the pass as it is
Pass = Callable[[], ActionChunk]


def run() -> dict[str, Any]:
    """Measure on one thread, print, and return the figures under `steps`."""
    config = TinyConfig(num_cameras=NUM_CAMERAS)
    now = _bench(TinyModel(config))
    variants = {
        'q, k, v and gate, up as five products': _bench(slower.separate_products(config)),
        'time conditioning in every step': _bench(slower.conditioned_in_steps(config)),
        'RMSNorm as its formula reads': _bench(slower.plain_norms(config)),
        'a plan of attention for every step': slower.plan_every_step(_bench(TinyModel(config))),
        'attention that gathers (reference)': _bench(TinyModel(config), 'reference'),
        'torch.compile (an option)': _compiled(config),
    }
    passes = {name: _pass(bench) for name, bench in variants.items()}
    times = _times({'now': _pass(now), **passes})
    steps = {
        name: {
            'before_ms': times[name],
            'after_ms': times['now'],
            'ratio': times[name] / times['now'],
        }
        for name in passes
    }
    figures = {'action_pass': steps, 'prefill': _prefill(now), 'scene_graph': _scene(config)}
    _print(figures)
    return {'steps': figures}


def _bench(model: VLAModel, backend: str = 'sdpa', jump_forward: bool = True) -> Workbench:
    """Run an engine until its first chunk, so that a pass can be repeated on its prefix."""
    sensors = SyntheticSensors(NUM_CAMERAS, model.spec.action_dim, num_observations=10)
    config = EngineConfig(attention_backend=backend, jump_forward=jump_forward)
    bench = Workbench(model, config, sensors, work_clock(model.device), OnlineCostModel())
    bench.run_until(lambda: len(bench.chunks) >= 8)
    return bench


def _compiled(config: TinyConfig) -> Workbench:
    print('compiling, up to a minute ...', flush=True)
    model = CompiledModel(TinyModel(config))
    bench = _bench(cast(VLAModel, model))
    if model.execution != 'compiled':
        print(f'torch.compile: {model.execution}')
    return bench


def _pass(bench: Workbench) -> Pass:
    state = bench.sensors.state(20 * MS)
    return lambda: bench.engine.action.run(state)


def _times(passes: dict[str, Pass]) -> dict[str, float]:
    """Median milliseconds of each, made in turn, so that a busy moment hits all.

    :raises AssertionError: a pass gives other chunks than the first.
    """
    samples: dict[str, list[float]] = {name: [] for name in passes}
    expected = None
    with torch.inference_mode():
        for _ in range(ROUNDS):
            for name, make in passes.items():
                start_s = time.perf_counter()
                chunk = make()
                samples[name].append((time.perf_counter() - start_s) * 1e3)
                expected = chunk.values if expected is None else expected
                np.testing.assert_allclose(chunk.values, expected, atol=TOLERANCE, err_msg=name)
    return {name: median(values) for name, values in samples.items()}


def _prefill(bench: Workbench) -> dict[str, float]:
    """The last layer of the prefix leaves K/V alone, from the units' own medians."""
    cost_model = bench.engine.scheduler.cost_model
    assert isinstance(cost_model, OnlineCostModel)
    ms = {key.kind: (cost_model.median_ns(key) or 0) * 1e-6 for key in cost_model.observed()}
    layers = bench.model.spec.num_layers
    before = layers * ms[UnitKind.PREFILL]
    after = (layers - 1) * ms[UnitKind.PREFILL] + ms[UnitKind.WRITE_KV]
    return {'before_ms': before, 'after_ms': after, 'ratio': before / after}


def _scene(config: TinyConfig) -> dict[str, float]:
    """Scene graphs with their forced tokens one a step, and all at once; the same texts."""
    model = TinyModel(config)
    words = [model.detokenize([token]) or None for token in range(model.spec.vocab_size)]
    vocabulary = ConstrainedVocabulary(words, model.spec.eos_token_ids[0], model.spec.vocab_size)
    cameras = tuple(f'camera_{index}' for index in range(NUM_CAMERAS))
    grammar = SceneGrammar(SceneFormat(cameras, 6, 4), vocabulary, MAX_SCENE_TOKENS)
    times: dict[bool, list[float]] = {False: [], True: []}
    texts: dict[bool, list[str]] = {False: [], True: []}
    benches = {jump: _bench(model, jump_forward=jump) for jump in times}
    for seed in range(NUM_SCENES):
        for jump, bench in benches.items():
            start_s = time.perf_counter()
            bench.engine.submit_text(
                seed,
                TaskType.SCENE_GRAPH,
                'List the objects.',
                SamplingParams(MAX_SCENE_TOKENS, 1.0, seed=seed),
                grammar.constraint(),
            )
            while bench.engine.text.num_live:
                now_ns = bench.clock.now_ns()
                bench.engine.run_cycle(now_ns, now_ns + 20 * MS)
            times[jump].append((time.perf_counter() - start_s) * 1e3)
            texts[jump].append(bench.results[-1].text)
    assert texts[True] == texts[False]
    before, after = median(times[False]), median(times[True])
    return {'before_ms': before, 'after_ms': after, 'ratio': before / after}


def _print(figures: dict[str, Any]) -> None:
    table = Table(
        title=f'one thread, medians of {ROUNDS} rounds made in turn; 64 visual tokens '
        f'of each of {NUM_CAMERAS} cameras'
    )
    for column in ('step', 'before ms', 'now ms', 'before / now'):
        table.add_column(column, justify='left' if column == 'step' else 'right')
    rows = [(f'action pass: {name}', row) for name, row in figures['action_pass'].items()]
    rows += [
        ('prefill: the last layer run to its end', figures['prefill']),
        ('scene graph: forced tokens one a step', figures['scene_graph']),
    ]
    for name, row in rows:
        table.add_row(
            name, f'{row["before_ms"]:.2f}', f'{row["after_ms"]:.2f}', f'{row["ratio"]:.2f}'
        )
    Console().print(table)


if __name__ == '__main__':
    sys.exit(main(parser(__doc__).parse_args(), run))
