# SPDX-License-Identifier: Apache-2.0
"""`oxygen inspect`: what a checkpoint holds and lacks, or how a running node uses its memory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..errors import OxygenError

_CLASSES = ('prefix', 'action', 'text', 'free')
_BLOCKS = ('free', 'owned', 'shared')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        'checkpoint',
        type=Path,
        metavar='CHECKPOINT',
        nargs='?',
        help='a LeRobot or openpi folder with safetensors; without it, the KV '
        'memory of the running node is shown',
    )
    parser.add_argument(
        '--timeout',
        type=float,
        default=15.0,
        metavar='S',
        help='how long to wait for the node (default: %(default)s)',
    )


def run(args: argparse.Namespace) -> int:
    """Print what is known; return 0 where the checkpoint would load or the node answered."""
    if args.checkpoint is None:
        from ..nodes.middleware.transport import use_large_data_transport

        use_large_data_transport()
        _show_memory(args.timeout)
        return 0
    from ..models.inspect import inspect_checkpoint

    inspection = inspect_checkpoint(args.checkpoint)
    width = max((len(name) for name, _ in inspection.facts), default=0)
    for name, fact in inspection.facts:
        print(f'{name.ljust(width)}  {fact}')
    for problem in inspection.problems:
        print(f'would not load: {problem}')
    return int(bool(inspection.problems))


def _show_memory(timeout_s: float) -> None:
    """Print the memory report of the node named `oxygen`.

    :raises OxygenError: no node answered in time, or it is not configured.
    """
    from ..nodes.clients.node_driver import NodeDriver, run_driver

    report = run_driver(
        lambda: NodeDriver('oxygen_inspect', lambda: None),
        lambda driver: driver.memory_report(timeout_s),
    )
    if not report.success:
        raise OxygenError(report.message)
    _print_memory(report)


def _print_memory(report: Any) -> None:
    """Print bytes by class, what isolated caches would take, blocks, live prefixes and counts."""
    table = Table(title='KV memory', show_header=False)
    table.add_row('allocated', f'{report.bytes_total:,} B')
    for name in _CLASSES:
        table.add_row(name, f'{getattr(report, f"bytes_{name}"):,} B')
    table.add_row('isolated caches would take', f'{report.bytes_isolated:,} B')
    table.add_row(
        'at its fullest',
        f'{report.bytes_peak_shared:,} B, isolated {report.bytes_peak_isolated:,} B',
    )
    blocks = ', '.join(f'{getattr(report, f"blocks_{name}")} {name}' for name in _BLOCKS)
    table.add_row('blocks', f'{report.blocks_total}: {blocks}')
    for observation_id, age_s, readers in zip(
        report.prefix_observation_ids, report.prefix_age_s, report.prefix_readers
    ):
        table.add_row(
            f'prefix of observation {observation_id}', f'{age_s:.2f} s old, {readers} readers'
        )
    table.add_row('preemptions', str(report.preemptions))
    table.add_row(
        'images',
        f'{report.images_encoded} encoded, {report.images_reused} reused, '
        f'{report.images_superseded} never read',
    )
    Console().print(table)
