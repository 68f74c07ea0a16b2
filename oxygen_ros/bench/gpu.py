"""What a GPU makes of the engine: stage times and throughput of the small model, kept as JSON as
they come.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
import json
from pathlib import Path
import platform
from typing import Any

import torch

from ..engine.config import EngineConfig
from ..engine.scheduling.cost_model import OnlineCostModel
from ..models.tiny import TinyModel
from ..models.tiny_config import TinyConfig
from ..runtime.work_clock import work_clock
from .batching import BATCHES, measure
from .workbench import MS, SyntheticSensors, Workbench


def stage_times(device: str, num_cycles: int = 200) -> dict[str, float]:
    """Run a loaded engine; return the median of each kind and size of unit, in ms."""
    model = TinyModel(TinyConfig(), device)
    cost_model = OnlineCostModel()
    bench = Workbench(
        model,
        EngineConfig(),
        SyntheticSensors(3, period_ns=50 * MS),
        work_clock(model.device),
        cost_model,
    )
    for cycle in range(num_cycles):
        if cycle % 20 == 0:
            bench.ask(max_tokens=32)
        bench.cycle()
    medians = {
        f'{key.kind.value}.{key.size}': cost_model.median_ns(key) for key in cost_model.observed()
    }
    return {name: median * 1e-6 for name, median in medians.items() if median is not None}


def environment() -> dict[str, str]:
    """Return what the figures were measured on."""
    cuda = torch.cuda.get_device_name() if torch.cuda.is_available() else 'none'
    return {
        'python': platform.python_version(),
        'torch': torch.__version__,
        'gpu': cuda,
        'machine': platform.machine(),
    }


def main() -> None:
    """Measure step by step; each step's figures are on disk before the next begins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--json', type=Path, required=True, metavar='FILE')
    args = parser.parse_args()
    steps: dict[str, Callable[[], Any]] = {
        'env': environment,
        'stage_ms': lambda: stage_times(args.device),
        'batching': lambda: {str(batch): measure(batch, args.device) for batch in BATCHES},
    }
    figures: dict[str, Any] = {}
    for name, step in steps.items():
        figures[name] = step()
        args.json.write_text(json.dumps(figures, indent=2) + '\n')
        print(f'{name}: {json.dumps(figures[name])}', flush=True)


if __name__ == '__main__':
    main()
