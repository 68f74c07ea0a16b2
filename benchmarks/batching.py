# SPDX-License-Identifier: Apache-2.0
"""Throughput of the batched decode step against the number of requests in it."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from oxygen_ros.bench.workbench import SyntheticSensors, Workbench
from oxygen_ros.engine.config import EngineConfig
from oxygen_ros.engine.model import VLAModel
from oxygen_ros.engine.scheduling.cost_model import CostModel, OnlineCostModel
from oxygen_ros.engine.scheduling.work import UnitKind
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig
from oxygen_ros.runtime.work_clock import work_clock

from .command_line import main, parser

BATCHES = (1, 2, 4, 8, 16)
TOKENS = 100


def measure(batch: int, device: str = 'cpu') -> dict[str, float]:
    """Return `decode` of the model tiny."""
    return decode(TinyModel(TinyConfig(), device), batch, TOKENS)


def decode(
    model: VLAModel, batch: int, num_tokens: int, cost_model: CostModel | None = None
) -> dict[str, float]:
    """Decode `batch` requests of one frame together, with nothing else to do; return tokens/s and
    rows a step.
    """
    config = EngineConfig(max_decode_batch=batch, max_admitted=17, max_text_requests=64)
    bench = Workbench(
        model,
        config,
        SyntheticSensors(model.spec.num_cameras, model.spec.action_dim, num_observations=1),
        work_clock(model.device),
        OnlineCostModel() if cost_model is None else cost_model,
    )
    engine = bench.engine
    bench.run_until(lambda: bool(bench.chunks))
    engine.action.replace(None)  # no more actions: text alone is measured
    for _ in range(batch):
        bench.ask(max_tokens=num_tokens)
    far_ns = 10**12
    engine.run_cycle(bench.clock.now_ns(), bench.clock.now_ns() + 1)
    before = engine.counters.text_tokens
    start_ns = time.perf_counter_ns()
    while engine.text.num_live:
        now_ns = bench.clock.now_ns()
        engine.run_cycle(now_ns, now_ns + far_ns)
    seconds = (time.perf_counter_ns() - start_ns) * 1e-9
    counters = engine.counters
    return {
        'tokens_per_s': (counters.text_tokens - before) / seconds,
        'rows_per_step': counters.decode_rows / counters.decode_steps,
        'layers': float(counters.units[UnitKind.DECODE]),
    }


def run() -> dict[str, Any]:
    """Measure, print, and return the figures."""
    measure(2)  # warm-up
    figures = {str(batch): measure(batch) for batch in BATCHES}
    table = Table(title=f'batched decode, {TOKENS} tokens a request, one frame, tiny model')
    for column in ('requests', 'tokens/s', 'over one alone', 'rows a step'):
        table.add_column(column, justify='right')
    alone = figures['1']['tokens_per_s']
    for batch, figure in figures.items():
        table.add_row(
            batch,
            f'{figure["tokens_per_s"]:.0f}',
            f'{figure["tokens_per_s"] / alone:.2f}',
            f'{figure["rows_per_step"]:.1f}',
        )
    Console().print(table)
    return {'batching': figures}


if __name__ == '__main__':
    sys.exit(main(parser(__doc__).parse_args(), run))
