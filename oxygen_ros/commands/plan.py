# SPDX-License-Identifier: Apache-2.0
"""`oxygen plan`: whether a model fits a board, how fast at best, and what a fleet costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..models.boards import Board
    from ..models.plan import Plan
    from ..models.vla_config import VLAConfig

PRESETS = ('pi05', 'pi0', 'smolvla', 'mot-14b')
BOARD_NAMES = ('orin', 'thor', 'rtx4090', 'h200')
WEIGHT_KINDS = ('fp32', 'bf16', 'int8', 'int4')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument('--preset', choices=PRESETS, help="a real model's sizes")
    model.add_argument('--checkpoint', type=Path, metavar='DIR', help='sizes of a checkpoint')
    parser.add_argument(
        '--weights',
        choices=WEIGHT_KINDS,
        default='bf16',
        help='how the experts are stored (default: %(default)s)',
    )
    board = parser.add_argument_group('board')
    board.add_argument('--board', choices=BOARD_NAMES, default='orin', help='default: %(default)s')
    board.add_argument('--memory-gb', type=float, metavar='GB', help="in place of the board's")
    board.add_argument('--bandwidth-gb-s', type=float, metavar='GB/S', help='likewise')
    board.add_argument('--tflop-s', type=float, metavar='TFLOP/S', help='likewise, bfloat16')
    load = parser.add_argument_group('workload')
    for name, default, meaning in (
        ('cameras', 3, 'images of an observation'),
        ('prompt-tokens', 48, 'text in the prefix'),
        ('text-tasks', 2, 'dialogue and scene graph at one time'),
        ('text-tokens', 128, 'prompt and answer of each'),
        ('live-prefixes', 4, 'observations held at one time'),
    ):
        load.add_argument(
            f'--{name}',
            type=int,
            default=default,
            metavar='N',
            help=f'{meaning} (default: %(default)s)',
        )
    load.add_argument(
        '--tick-hz',
        type=float,
        default=50.0,
        metavar='HZ',
        help='control rate (default: %(default)s)',
    )
    fleet = parser.add_argument_group('fleet')
    fleet.add_argument(
        '--price-usd',
        type=float,
        metavar='USD',
        help="of one robot's boards; prints the cost by the hour",
    )
    for name, value, meaning in (
        ('months', 36.0, 'lifetime'),
        ('hours-per-day', 24.0, 'use'),
        ('power-w', 60.0, 'of the boards'),
        ('usd-per-kwh', 0.15, 'price of power'),
    ):
        fleet.add_argument(
            f'--{name}',
            type=float,
            default=value,
            metavar='X',
            help=f'{meaning} (default: %(default)s)',
        )


def run(args: argparse.Namespace) -> int:
    """Print the plan; return 0 where the model fits, else 1."""
    from ..errors import OxygenError
    from ..models.plan import Plan, WeightKind, Workload

    try:
        if not args.tick_hz > 0.0:
            raise ValueError(f'tick_hz: expected above 0, got {args.tick_hz}')
        workload = Workload(
            args.cameras,
            args.prompt_tokens,
            args.text_tasks,
            args.text_tokens,
            args.live_prefixes,
            tick_s=1.0 / args.tick_hz,
        )
        plan = Plan(_config(args), workload, _board(args), WeightKind(args.weights))
        _print_memory(plan)
        _print_times(plan)
        _print_fleet(args)
    except ValueError as error:
        raise OxygenError(str(error)) from error
    return int(not plan.memory.fits)


def _config(args: argparse.Namespace) -> VLAConfig:
    if args.checkpoint is not None:
        from ..models.checkpoint import read_folder

        return read_folder(args.checkpoint)[2]
    from ..models.presets import preset

    return preset(args.preset)


def _board(args: argparse.Namespace) -> Board:
    from dataclasses import replace

    from ..models.boards import BOARDS

    given = {
        name: getattr(args, name)
        for name in ('memory_gb', 'bandwidth_gb_s', 'tflop_s')
        if getattr(args, name) is not None
    }
    board = BOARDS[args.board]
    return replace(board, name=f'{board.name}, changed', **given) if given else board


def _print_memory(plan: Plan) -> None:
    memory, board, work = plan.memory, plan.board, plan.workload
    print(
        f'All figures are estimates. {plan.num_parameters / 1e9:.3f} billion parameters, '
        f'weights in {plan.kind.value}, on {board.name} ({board.memory_gb:g} GB, '
        f'{board.bandwidth_gb_s:g} GB/s, {board.tflop_s:g} TFLOP/s)'
    )
    if plan.kind.value.startswith('int'):
        print('  integers are for planning: this version loads float32 and bfloat16')
    rows = (
        ('weights', memory.weights),
        (
            f'KV, shared ({work.live_prefixes} prefixes of {plan.num_prefix} tokens)',
            memory.kv_shared,
        ),
        ('workspace and runtime', memory.workspace),
        ('sum', memory.total),
        (
            f'limit ({100 * memory.limit / board.memory_gb / 1e9:.0f} % of the memory)',
            memory.limit,
        ),
        ('KV, isolated, for comparison', memory.kv_isolated),
    )
    for name, value in rows:
        print(f'  {name.ljust(44)} {value / 1e9:9.3f} GB')
    print('fits' if memory.fits else 'DOES NOT FIT')


def _print_times(plan: Plan) -> None:
    times, work = plan.times, plan.workload
    rows = (
        (f'vision, {work.num_cameras} cameras', times.vision),
        ('prefill', times.prefill),
        ('denoising step', times.denoise_step),
        (f'action pass, {plan.config.num_denoising_steps} steps', times.action_pass),
        (f'text step, {work.num_text_tasks} requests', times.text_step),
        ('worst wait of a due action', times.worst_wait),
    )
    print('Roofline times, the least possible:')
    for name, value in rows:
        print(f'  {name.ljust(44)} {value * 1e3:9.3f} ms')
    mode = times.mode(work, plan.config.action_horizon)
    print(f'  action.mode at {1.0 / work.tick_s:g} Hz'.ljust(46) + f' {mode}')


def _print_fleet(args: argparse.Namespace) -> None:
    from ..models.fleet import ARTICLE_CLAIMS, FleetCost

    print('Cost by the hour:')
    for price in () if args.price_usd is None else (args.price_usd,):
        cost = FleetCost(price, args.months, args.hours_per_day, args.power_w, args.usd_per_kwh)
        print(
            f'  boards ${price:,.0f}, power ${cost.energy_usd:,.0f} over {cost.hours:,.0f} '
            f'hours ({args.months:g} months): ${cost.usd_per_hour:.4f} an hour'
        )
    for claim in ARTICLE_CLAIMS:
        cost = FleetCost(
            claim.price_usd, args.months, args.hours_per_day, args.power_w, args.usd_per_kwh
        )
        missing = claim.missing_usd(cost)
        print(
            f"  the article's ${claim.usd_per_hour:.2f} with boards of "
            f'${claim.price_usd:,.0f}: the price alone implies {claim.implied_hours:.1f} hours; '
            f'over {args.months:g} months ({cost.hours:,.0f} hours) it would need '
            f'${missing:,.0f} more (${missing / args.months:,.0f} a month) beside boards and '
            f'${cost.energy_usd:,.0f} of power'
        )
