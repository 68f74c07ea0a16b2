# SPDX-License-Identifier: Apache-2.0
"""`oxygen parity FOLDER...`: a model against the outputs of the implementation it came from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        'folders',
        nargs='+',
        type=Path,
        metavar='FOLDER',
        help='checkpoint with io.safetensors beside it, or references of '
        'preprocessing (doc/models.md)',
    )
    parser.add_argument(
        '--backend',
        choices=('sdpa', 'reference', 'both'),
        default='both',
        help='attention backend (default: %(default)s)',
    )
    parser.add_argument('--device', default='cpu', help='cpu, cuda ... (default: %(default)s)')


def run(args: argparse.Namespace) -> int:
    """Compare; return 0 where all is within the tolerances, else 1."""
    import torch

    from ..models.parity import check_folder
    from ..models.parity_processing import check_processing, is_processing_folder

    torch.set_num_threads(1)
    backends = ('reference', 'sdpa') if args.backend == 'both' else (args.backend,)
    rows: list[Sequence[str]] = []
    failed = 0
    for folder in args.folders:
        if is_processing_folder(folder):
            results = [('', check_processing(folder))]
        else:
            results = [(name, check_folder(folder, name, args.device)) for name in backends]
        for backend, differences in results:
            for item in differences:
                failed += not item.is_within
                rows.append(
                    (
                        folder.name,
                        backend,
                        item.quantity,
                        f'{item.value:.1e}',
                        f'{item.tolerance:.0e}',
                        f'{item.scale:.3g}',
                        'ok' if item.is_within else 'BEYOND',
                    )
                )
    _print(rows)
    if failed:
        print(f'{failed} of {len(rows)} beyond the tolerance')
    return int(failed > 0)


def _print(rows: Sequence[Sequence[str]]) -> None:
    """Print columns as wide as their contents, so that lines can be searched."""
    head = ('folder', 'backend', 'quantity', 'difference', 'tolerance', 'largest', '')
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print('  '.join(cells).rstrip())
