"""`oxygen inspect CHECKPOINT`: what a folder holds, what it lacks, and whether it would load."""
from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument('checkpoint', type=Path, metavar='CHECKPOINT',
                        help='a LeRobot or openpi folder with safetensors')


def run(args: argparse.Namespace) -> int:
    """Print what is known; return 0 where the checkpoint would load, else 1."""
    from ..models.inspect import inspect_checkpoint
    inspection = inspect_checkpoint(args.checkpoint)
    width = max((len(name) for name, _ in inspection.facts), default=0)
    for name, fact in inspection.facts:
        print(f'{name.ljust(width)}  {fact}')
    for problem in inspection.problems:
        print(f'would not load: {problem}')
    return int(bool(inspection.problems))
