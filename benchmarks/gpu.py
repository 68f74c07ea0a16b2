# SPDX-License-Identifier: Apache-2.0
"""What a GPU makes of the engine: the small model, and one of pi0.5's size with random weights.

Each part's figures are in the JSON file before the next part begins.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
import json
from pathlib import Path
import platform
import time
from typing import Any, cast

from rich.console import Console
from rich.table import Table
import torch

from oxygen_ros.engine.model import VLAModel
from oxygen_ros.models.compiled import CompiledModel
from oxygen_ros.models.graphed import GraphedModel
from oxygen_ros.models.presets import preset
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig

from .gpu_model import BATCHES, device_rates, floors_ms, measure
from .random_model import random_model

_JOINTS = 14  # two arms of seven
_PI05_BYTES = 13e9  # weights, the largest tensor once more in float32, K/V of several engines


def environment() -> dict[str, str]:
    """Return what the figures were measured on."""
    return {
        'python': platform.python_version(),
        'torch': torch.__version__,
        'cuda': str(torch.version.cuda),
        'gpu': torch.cuda.get_device_name(),
        'machine': platform.machine(),
    }


class Figures:
    """What was measured so far, in the file as soon as it stands."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.values: dict[str, Any] = {}

    def keep(self, name: str, values: Any) -> None:
        """Write one part, in place of what stood there."""
        self.values[name] = values
        self._path.write_text(json.dumps(self.values, indent=2) + '\n')

    def model(self, name: str, make: Callable[[], VLAModel], **sizes: Any) -> dict[str, Any]:
        """Measure a model and say so."""
        print(f'{name} ...', flush=True)
        torch.cuda.reset_peak_memory_stats()
        begun = time.perf_counter()
        found = measure(make, lambda values: self.keep(name, values), **sizes)
        found['gpu_bytes'] = {
            'allocated_peak': torch.cuda.max_memory_allocated(),
            'reserved': torch.cuda.memory_reserved(),
        }
        found['seconds'] = time.perf_counter() - begun
        self.keep(name, found)
        print(json.dumps(found), flush=True)
        return found


def rows(found: dict[str, Any], floors: dict[str, float]) -> list[tuple[str, float, float, float]]:
    """Return name, median, p99 and floor of each stage, in ms; a floor of 0: none is known."""
    stages = [(name, found['stages'][name]) for name in ('vision', 'prefill', 'denoise', 'pass')]
    stages += [(f'decode.{batch}', found['decode'][str(batch)]) for batch in BATCHES]
    return [(name, times['p50'], times['p99'], floors.get(name, 0.0)) for name, times in stages]


def show(name: str, found: dict[str, Any], floors: dict[str, float]) -> None:
    """Print a model's stages beside their floors."""
    table = Table(title=f'{name}: ms in the engine')
    for column in ('stage', 'p50', 'p99', 'floor', 'times the floor'):
        table.add_column(column, justify='left' if column == 'stage' else 'right')
    for stage, p50, p99, floor in rows(found, floors):
        ratio = (f'{floor:.3f}', f'{p50 / floor:.1f}') if floor else ('', '')
        table.add_row(stage, f'{p50:.2f}', f'{p99:.2f}', *ratio)
    Console(width=99).print(table)


def main() -> None:
    """Measure step by step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--json', type=Path, required=True, metavar='FILE')
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error('expected a CUDA device, found none')
    torch.set_num_threads(1)  # as the engine's own
    figures = Figures(args.json)
    figures.keep('env', environment())
    print(json.dumps(environment()), flush=True)
    rates = device_rates()
    figures.keep('rates', rates)
    print(json.dumps(rates), flush=True)
    tiny: VLAModel = TinyModel(TinyConfig(), 'cuda')
    show('tiny, float32', figures.model('tiny', lambda: tiny, loaded_s=3.0), {})
    show(
        'tiny, float32, graphs',
        figures.model('tiny_graphs', lambda: _graphed(tiny), loaded_s=3.0),
        {},
    )
    config = replace(preset('pi05'), action_dim=_JOINTS, state_dim=_JOINTS)
    free = torch.cuda.mem_get_info()[0]
    if free < _PI05_BYTES:
        print(
            f'pi05: left out, expected {_PI05_BYTES * 1e-9:.0f} GB of free GPU memory, '
            f'got {free * 1e-9:.1f}'
        )
        return
    pi05: VLAModel = random_model(config, 'cuda', torch.bfloat16)
    compiled = cast(VLAModel, CompiledModel(pi05))
    ways: dict[str, Callable[[], VLAModel]] = {
        'pi05': lambda: pi05,
        'pi05_graphs': lambda: _graphed(pi05),
        'pi05_compiled_graphs': lambda: _graphed(compiled),
    }
    for name, make in ways.items():
        found = figures.model(name, make)
        floors = floors_ms(config, found['stages']['prefix_tokens'], rates)
        figures.keep('floors_ms', floors)
        show(
            f'{name}, {floors["parameters"] * 1e-9:.2f} billion parameters, bfloat16',
            found,
            floors,
        )


def _graphed(model: VLAModel) -> VLAModel:
    return cast(VLAModel, GraphedModel(model))


if __name__ == '__main__':
    main()
