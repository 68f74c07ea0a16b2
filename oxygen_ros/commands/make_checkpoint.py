# SPDX-License-Identifier: Apache-2.0
"""`oxygen make-checkpoint DIR`: a checkpoint with random weights in LeRobot's layout."""

from __future__ import annotations

import argparse
from pathlib import Path

FAMILIES = ('pi05', 'pi0', 'smolvla')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument('folder', type=Path, metavar='DIR', help='a new or empty folder')
    parser.add_argument('--family', choices=FAMILIES, required=True)
    parser.add_argument(
        '--small',
        action='store_true',
        help='a quarter of a million parameters, for one CPU core; without it '
        'the real sizes in bfloat16, gigabytes',
    )
    parser.add_argument(
        '--cameras',
        default='front,left_wrist,right_wrist',
        metavar='A,B,...',
        help="the model's camera keys in its order (default: %(default)s)",
    )
    parser.add_argument(
        '--joints',
        type=int,
        default=7,
        metavar='N',
        help='joints of state and action (default: %(default)s)',
    )
    parser.add_argument('--seed', type=int, default=0, help='of the weights')


def run(args: argparse.Namespace) -> int:
    """Write the folder and say what is in it."""
    import torch

    from ..errors import OxygenError
    from ..models.make_checkpoint import real_config, small_config, write_checkpoint
    from ..models.tensor_shapes import num_parameters
    from ..models.vla_config import Family

    cameras = tuple(name for name in args.cameras.split(',') if name)
    family = Family(args.family)
    try:
        config = (small_config if args.small else real_config)(family, cameras, args.joints)
    except ValueError as error:
        raise OxygenError(str(error)) from error
    write_checkpoint(
        args.folder, config, args.seed, torch.float32 if args.small else torch.bfloat16
    )
    print(
        f'{args.folder}: {args.family}, {num_parameters(config):,} parameters, random; '
        f'cameras {", ".join(cameras)}; {args.joints} joints'
    )
    return 0
