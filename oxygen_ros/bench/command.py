# SPDX-License-Identifier: Apache-2.0
"""`oxygen bench`: measurements, each printed beside what it is compared with."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

from ..errors import OxygenError

# name: (module with `run(...) -> dict`, line of help)
MEASUREMENTS = {
    'kv': ('oxygen_ros.bench.kv', 'KV memory, shared against isolated; attention backends'),
    'batching': ('oxygen_ros.bench.batching', 'decode throughput against batch size'),
    'steps': ('oxygen_ros.bench.steps', 'each optimisation beside what it took the place of'),
    'stages': ('oxygen_ros.bench.stages', 'a chunk of --checkpoint, stage by stage'),
    'memory': ('oxygen_ros.bench.memory', 'queries of a store of 100,000 objects; its limits'),
    'load': ('oxygen_ros.bench.full_load', 'the node under the full load for a minute'),
    'monitoring': ('oxygen_ros.bench.monitoring', 'what watching costs the tick, 5 minutes'),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    lines = '; '.join(f'{name}: {line}' for name, (_, line) in MEASUREMENTS.items())
    parser.add_argument(
        'what',
        nargs='?',
        choices=MEASUREMENTS,
        help=f'one measurement alone (default: the whole suite). {lines}',
    )
    parser.add_argument(
        '--checkpoint',
        type=Path,
        metavar='DIR',
        help='measure this checkpoint and not the small model: of the suite and of stages',
    )
    parser.add_argument(
        '--quick',
        action='store_true',
        help='the suite in under a minute: one load, one round; of monitoring: fewer blocks',
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures there')
    parser.add_argument(
        '--duration',
        type=float,
        metavar='S',
        help='of load (default: 60 s), of a block of monitoring (10 s)',
    )
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        metavar='PARAMETER=VALUE',
        help='of load: a parameter of the node (config/oxygen.yaml); may be given again',
    )
    parser.add_argument(
        '--record',
        type=Path,
        metavar='DIR',
        help='of load: a new folder for a bag of the run and its figures',
    )


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a measurement; one that it does not have is refused."""
    options: dict[str, Any] = {}
    if args.duration is not None:
        if args.what not in ('load', 'monitoring') or not args.duration > 0.0:
            raise OxygenError(
                f'--duration: expected load or monitoring, and a number above 0, '
                f'got {args.what or "the suite"} and {args.duration:g}'
            )
        options['duration_s'] = args.duration
    if args.set:
        if args.what != 'load':
            raise OxygenError(f'--set: expected load, got {args.what or "the suite"}')
        from ..commands.replay_settings import parse_setting

        options['parameters'] = dict(map(parse_setting, args.set))
    if args.record is not None:
        if args.what != 'load':
            raise OxygenError(f'--record: expected load, got {args.what or "the suite"}')
        options['record'] = args.record
    if args.checkpoint is not None and args.what is not None:
        if args.what != 'stages':
            raise OxygenError(f'--checkpoint: expected the suite or stages, got {args.what}')
        options['checkpoint'] = args.checkpoint
    if args.quick and args.what is not None:
        if args.what != 'monitoring':
            raise OxygenError(f'--quick: expected the suite or monitoring, got {args.what}')
        options = {'duration_s': 3.0, 'num_pairs': 2} | options
    return options


def run(args: argparse.Namespace) -> int:
    """Run a measurement; return the exit status: 1 when a gate does not hold."""
    if args.json is not None and not args.json.resolve().parent.is_dir():
        raise OxygenError(f'--json: expected a file in an existing folder, got {args.json}')
    options = _options(args)
    import torch

    torch.set_num_threads(1)
    if args.what is None:
        from .subject import checkpoint_subject, TINY
        from .suite import run as run_suite

        folder = args.checkpoint
        figures = run_suite(args.quick, TINY if folder is None else checkpoint_subject(folder))
    else:
        figures = importlib.import_module(MEASUREMENTS[args.what][0]).run(**options)
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=2) + '\n')
    failed = [name for name, gate in figures.get('gates', {}).items() if not gate['holds']]
    return 1 if failed else 0
