# SPDX-License-Identifier: Apache-2.0
"""`oxygen replay BAG`: a recording against the node, exactly repeatable or in real time."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
import sys

from ..errors import OxygenError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        'bag', type=Path, metavar='BAG', help='rosbag2 folder or storage file (MCAP or SQLite)'
    )
    parser.add_argument(
        '--deterministic',
        action='store_true',
        help="in this process on the recording's own clock: the same outputs each "
        'time; without it, in real time through DDS',
    )
    parser.add_argument(
        '--start',
        type=_seconds,
        default=0.0,
        metavar='S',
        help='where in the recording to begin (s)',
    )
    parser.add_argument(
        '--duration',
        type=_seconds,
        metavar='S',
        help='how much of it to play (s; default: to its end)',
    )
    parser.add_argument(
        '--rate',
        type=_seconds,
        metavar='X',
        help='pace, in times of the recorded one (real time only; default: 1)',
    )
    parser.add_argument(
        '--loop',
        action='store_true',
        help='again and again, until --duration or Ctrl-C (real time only)',
    )
    parser.add_argument(
        '--clock',
        type=_seconds,
        nargs='?',
        const=100.0,
        metavar='HZ',
        help="publish the recording's time on /clock (default: 100 Hz), keep its "
        'stamps, and let the node follow (real time only)',
    )
    parser.add_argument(
        '--remap',
        action='append',
        default=[],
        metavar='A:=B',
        help='take the recorded topic A for B; may be given several times',
    )
    parser.add_argument(
        '--ask',
        action='append',
        default=[],
        metavar='TIME:TEXT',
        help='ask something TIME seconds after the start; likewise',
    )
    parser.add_argument(
        '--scene-period',
        type=_seconds,
        metavar='S',
        help='time between scene graphs (default: memory.period_s; 0: none)',
    )
    parser.add_argument('--model', metavar='NAME', help='short for --set model.name=NAME')
    parser.add_argument('--seed', type=int, metavar='N', help='short for --set model.seed=N')
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        metavar='PARAMETER=VALUE',
        help='a parameter of the node (config/oxygen.yaml); likewise',
    )
    parser.add_argument(
        '--record',
        type=Path,
        metavar='OUT',
        help='write the outputs there as an MCAP bag (a new folder)',
    )
    parser.add_argument(
        '--compare',
        type=Path,
        metavar='GOLDEN',
        help='compare with a recorded bag or a JSON summary; status 1 where they '
        'differ (deterministic only)',
    )
    parser.add_argument(
        '--tolerance',
        type=_seconds,
        default=0.0,
        metavar='X',
        help='of floats, absolute up to 1 and relative above (default: 0, bit for bit)',
    )
    parser.add_argument(
        '--json',
        type=Path,
        metavar='FILE',
        help='write a summary there, to compare with (deterministic only)',
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float('inf'):
        raise argparse.ArgumentTypeError(f'expected a number of at least 0, got {text}')
    return value


def run(args: argparse.Namespace) -> int:
    """Play; return 0, or 1 where outputs differ or the recording is damaged."""
    _check(args)
    from .replay_settings import parse_setting

    short = {'model.name': args.model, 'model.seed': args.seed}
    parameters = {
        **dict(map(parse_setting, args.set)),
        **{name: value for name, value in short.items() if value is not None},
    }
    questions = [_question(text) for text in args.ask]
    remap = dict(map(_remapping, args.remap))
    if args.deterministic:
        return _run_deterministic(args, parameters, questions, remap)
    from .replay_live import replay_live

    return replay_live(args, parameters, questions, remap)


def _check(args: argparse.Namespace) -> None:
    for option, given in (
        ('--loop', args.loop),
        ('--rate', args.rate is not None),
        ('--clock', args.clock is not None),
    ):
        if args.deterministic and given:
            raise OxygenError(
                f'{option}: expected without --deterministic, whose clock is the '
                "recording's, got both"
            )
    for option, path in (('--compare', args.compare), ('--json', args.json)):
        if path is not None and not args.deterministic:
            raise OxygenError(
                f'{option}: expected together with --deterministic, for no two runs '
                'in real time are equal, got it alone'
            )
    if args.json is not None and not args.json.resolve().parent.is_dir():
        raise OxygenError(f'--json: expected a file in an existing folder, got {args.json}')
    if args.duration == 0.0:
        raise OxygenError('--duration: expected above 0, got 0')
    for option, number, low, high in (
        ('--rate', args.rate, 0.01, 100.0),
        ('--clock', args.clock, 1.0, 1000.0),
    ):
        if number is not None and not low <= number <= high:
            raise OxygenError(f'{option}: expected {low:g} to {high:g}, got {number:g}')


def _question(text: str) -> tuple[float, str]:
    time_s, colon, question = text.partition(':')
    try:
        if colon and question.strip():
            return float(time_s), question
    except ValueError:
        pass
    raise OxygenError(f'--ask: expected TIME:TEXT with a time in seconds, got {text!r}')


def _remapping(text: str) -> tuple[str, str]:
    recorded, sign, new = text.partition(':=')
    if not (sign and recorded and new):
        raise OxygenError(f'--remap: expected A:=B, got {text!r}')
    return '/' + recorded.lstrip('/'), '/' + new.lstrip('/')


def _run_deterministic(
    args: argparse.Namespace,
    parameters: dict[str, object],
    questions: list[tuple[float, str]],
    remap: dict[str, str],
) -> int:
    from ..replay.bag import open_bag
    from ..replay.comparison import compare, rows_of
    from ..replay.golden import read_golden, write_summary
    from ..replay.layout import discover_cameras
    from ..replay.recorder import OutputRecorder
    from .replay_progress import progress_bar
    from .replay_settings import make_replay, replay_settings

    golden = None if args.compare is None else read_golden(args.compare)
    with ExitStack() as stack:
        bag = stack.enter_context(open_bag(args.bag, remap))
        layout = discover_cameras(bag)
        settings = replay_settings(
            layout,
            parameters,
            questions=questions,
            scene_period=args.scene_period,
            start=args.start,
            duration=args.duration,
        )
        replay = make_replay(bag, layout, settings)
        sinks = []
        if args.record is not None:
            recorder = stack.enter_context(OutputRecorder(args.record))
            recorder.begin(replay.start_ns)
            sinks.append(recorder.write)
        with progress_bar(replay.duration_s) as progress:
            result = replay.run(sinks, progress)
    for line in (result.summary, *result.problems):
        print(line)
    print(', '.join(f'{count} {name}' for name, count in result.counts().items()))
    if args.json is not None:
        write_summary(result, args.json)
    status = 0 if result.is_complete else 1
    if golden is not None:
        found = compare(rows_of(result), golden, args.tolerance)
        print(f'differs from {args.compare}: {found}' if found else f'equals {args.compare}')
        status = 1 if found else status
    if not result.is_complete:
        print(f'oxygen replay: incomplete: {result.loss}', file=sys.stderr)
    return status
