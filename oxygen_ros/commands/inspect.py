# SPDX-License-Identifier: Apache-2.0
"""`oxygen inspect`: what a checkpoint holds and lacks, or how a running node uses its memory."""

from __future__ import annotations

import argparse
from pathlib import Path


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
        from ..nodes.clients.memory_client import show_memory

        show_memory(args.timeout)
        return 0
    from ..models.inspect import inspect_checkpoint

    inspection = inspect_checkpoint(args.checkpoint)
    width = max((len(name) for name, _ in inspection.facts), default=0)
    for name, fact in inspection.facts:
        print(f'{name.ljust(width)}  {fact}')
    for problem in inspection.problems:
        print(f'would not load: {problem}')
    return int(bool(inspection.problems))
