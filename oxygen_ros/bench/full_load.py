# SPDX-License-Identifier: Apache-2.0
"""`oxygen bench load`: the node under the full load, and a recording of that very run."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from ..errors import OxygenError
from ..models.registry import create_model
from ..replay.bag import open_bag
from ..report.recorded_figures import figures_of
from ..report.recording import read_recording
from .loads import isolate, LOADS, run_node
from .rows import ROWS
from .suite import environment

_CONSOLE = Console()
_RECORDED = ('action', 'preempt')


def run(
    duration_s: float = 60.0,
    record: Path | None = None,
    parameters: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure, print and return the figures, under the names of the suite's.

    :param duration_s: of the run, without start and settling.
    :param record: a new folder for `bag`, which holds what the node published in that time, and
        `bench.json`, the figures.
    :param parameters: of the node, over those of the benchmark.
    :raises OxygenError: the folder is there already, or cannot be made.
    """
    from ..nodes.clients.load_client import run_load

    isolate()
    figures: dict[str, Any] = {'env': environment()}
    client = None
    if record is not None:
        try:
            record.mkdir()
        except OSError as error:
            raise OxygenError(
                f'--record: expected a new folder, got {record}: {error.strerror}'
            ) from None
        client = functools.partial(run_load, bag=record / 'bag')
    load = LOADS[-1]
    _CONSOLE.print(f'{load.name}: full, {duration_s:g} s ...', style='dim')
    found = run_node(ROWS['full'], load, duration_s, parameters, client=client)
    figures['tick'] = {load.name: {'full': found.pop('tick')}}
    figures['dialogue'] = {load.name: found.pop('dialogue')}
    figures |= found
    if record is not None:
        _take_recorded(figures, record / 'bag')
    horizon = create_model('tiny').spec.action_horizon
    figures['action'].setdefault('actions_per_s', figures['action']['chunks_per_s'] * horizon)
    tick = figures['tick'][load.name]['full']
    _CONSOLE.print(
        f'tick: sd {tick["sd_ms"]:.3f} ms, p99 {tick["p99_ms"]:.3f} ms, '
        f'{100.0 * tick["on_time"]:.2f} % on time'
    )
    wait, ingest = figures['preempt']['wait_ms'], figures['ingest']['ms']
    spoken = figures['dialogue'][load.name]
    _CONSOLE.print(
        f'wait behind a slice: {wait["p50"]:.2f} ms p50, {wait["p99"]:.2f} p99; '
        f'ingest {ingest["p50"]:.2f} p50, {ingest["p99"]:.2f} p99; '
        f'{spoken["tokens_per_s"]:.0f} tokens/s'
    )
    if record is not None:
        (record / 'bench.json').write_text(json.dumps(figures, indent=2) + '\n')
        _CONSOLE.print(
            f'`oxygen report {record / "bag"}` and `oxygen report '
            f'{record / "bench.json"}` show the run'
        )
    return figures


def _take_recorded(figures: dict[str, Any], bag_path: Path) -> None:
    """Replace the figures that a recording has too by its own: those of the recorded time alone.

    The node's own record begins with its activation.
    """
    with open_bag(bag_path) as bag:
        recorded = figures_of(read_recording(bag))
    for name, value in recorded.items():
        group, *inner, last = name.split('.')
        if group in _RECORDED:
            place = figures[group]
            for key in inner:
                place = place.setdefault(key, {})
            place[last] = value
