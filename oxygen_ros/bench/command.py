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
    'kv': ('oxygen_ros.bench.kv', 'KV memory, shared against isolated'),
    'stages': ('oxygen_ros.bench.stages', 'a chunk of --checkpoint, stage by stage'),
    'load': ('oxygen_ros.bench.full_load', 'the node under the full load for a minute'),
}
MOVED = ('batching', 'memory', 'monitoring', 'steps')  # to benchmarks/ of a checkout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    lines = '; '.join(f'{name}: {line}' for name, (_, line) in MEASUREMENTS.items())
    parser.add_argument(
        'what',
        nargs='?',
        type=_measurement,
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
        '--quick', action='store_true', help='the suite in under a minute: one load, one round'
    )
    add_json_option(parser)
    parser.add_argument('--duration', type=float, metavar='S', help='of load (default: 60 s)')
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


def _measurement(name: str) -> str:
    if name in MOVED:
        raise argparse.ArgumentTypeError(
            f'{name} is measured in a checkout: .venv/bin/python -m benchmarks.{name}'
        )
    return name


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`, for `check_json` and `conclude`."""
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures there')


def check_json(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is measured.

    :raises OxygenError: its folder does not exist.
    """
    if path is not None and not path.resolve().parent.is_dir():
        raise OxygenError(f'--json: expected a file in an existing folder, got {path}')


def conclude(figures: dict[str, Any], path: Path | None) -> int:
    """Write figures to a file, if any; return the exit status: 1 when a gate does not hold."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2) + '\n')
    return 0 if all(gate['holds'] for gate in figures.get('gates', {}).values()) else 1


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a measurement; one that it does not have is refused."""
    options: dict[str, Any] = {}
    what = args.what or 'the suite'
    if args.duration is not None:
        if args.what != 'load' or not args.duration > 0.0:
            raise OxygenError(
                f'--duration: expected load, and a number above 0, got {what} and '
                f'{args.duration:g}'
            )
        options['duration_s'] = args.duration
    if args.set:
        if args.what != 'load':
            raise OxygenError(f'--set: expected load, got {what}')
        from ..commands.replay_settings import parse_setting

        options['parameters'] = dict(map(parse_setting, args.set))
    if args.record is not None:
        if args.what != 'load':
            raise OxygenError(f'--record: expected load, got {what}')
        options['record'] = args.record
    if args.checkpoint is not None and args.what is not None:
        if args.what != 'stages':
            raise OxygenError(f'--checkpoint: expected the suite or stages, got {what}')
        options['checkpoint'] = args.checkpoint
    if args.quick and args.what is not None:
        raise OxygenError(f'--quick: expected the suite, got {what}')
    return options


def run(args: argparse.Namespace) -> int:
    """Run a measurement; return the exit status: 1 when a gate does not hold."""
    check_json(args.json)
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
    return conclude(figures, args.json)
