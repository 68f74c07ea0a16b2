# SPDX-License-Identifier: Apache-2.0
"""`oxygen demo`: from nothing to a running node, a question, a scene graph and a table."""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path
import tempfile

from ..errors import OxygenError
from ..figures.latency_fields import kv_reduction
from ..figures.ticks import MAX_OBSERVATION_AGE_MS
from .figures import DemoFigures, summarise
from .processes import Children
from .source import list_argument, make_source, Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        '--duration',
        type=_positive,
        default=30.0,
        metavar='S',
        help='seconds from activation to the end (default: %(default)s)',
    )
    parser.add_argument(
        '--bag',
        type=Path,
        metavar='PATH',
        help='play this rosbag2 recording (MCAP or SQLite) instead of the generated scene',
    )
    parser.add_argument('--loop', action='store_true', help='play the bag again and again')
    model = parser.add_mutually_exclusive_group()
    model.add_argument('--model', default='tiny', help='model by name (default: %(default)s)')
    model.add_argument(
        '--checkpoint',
        type=Path,
        metavar='DIR',
        help='model from this folder (pi0.5, pi0 or SmolVLA)',
    )
    parser.add_argument('--question', default='What do you see?', help='what the client asks')
    parser.add_argument(
        '--instruction',
        default='put the cup on the plate',
        help='what the arm should do (a bag brings its own)',
    )
    parser.add_argument(
        '--max-observation-age-ms',
        type=_positive,
        default=MAX_OBSERVATION_AGE_MS,
        metavar='MS',
        help='older observations are not acted on (default: %(default)s)',
    )
    parser.add_argument(
        '--params-file', type=Path, metavar='YAML', help='more parameters for the node'
    )
    parser.add_argument(
        '--trace',
        type=Path,
        metavar='FILE',
        help='write the timeline of slices, passes and waits there, for Perfetto',
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures there')


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float('inf'):
        raise argparse.ArgumentTypeError(f'expected a number above 0, got {text}')
    return value


def run(args: argparse.Namespace) -> int:
    """Run the demo; return the exit status."""
    _check_before_start(args)
    source = make_source(args.bag, args.loop, args.instruction, args.checkpoint)
    if source.camera_map:
        print(f'cameras: {", ".join(source.camera_map)}', flush=True)
    _isolate()
    # Imported after the environment is set: the middleware reads it when it is loaded.
    from .client import DemoPlan, run_client

    with tempfile.TemporaryDirectory() as folder, Children() as children:
        record = Path(folder) / 'run.json'
        children.start('camera source', source.module, source.arguments)
        children.start(
            'node',
            'oxygen_ros.nodes.oxygen_node',
            _node_arguments(args, source, record),
        )
        plan = DemoPlan(
            duration_s=args.duration,
            question=args.question,
            cameras=source.cameras,
            max_observation_age_s=args.max_observation_age_ms * 1e-3,
        )
        recording = run_client(plan, children.check)
        if args.trace is not None:
            _write_trace(args.trace, record)
    figures = summarise(recording)
    _print(figures)
    if args.json is not None:
        args.json.write_text(json.dumps(figures.to_json(), indent=2) + '\n')
    return 0


def _write_trace(path: Path, record: Path) -> None:
    import numpy as np

    from ..report.perfetto import write_trace

    rows = json.loads(record.read_text())['timeline']
    write_trace(path, np.array(rows, dtype=np.int64).reshape(-1, 5))
    print(f'{path}: open it at ui.perfetto.dev')


def _check_before_start(args: argparse.Namespace) -> None:
    from ..models.options import MODEL_NAMES

    if args.model not in MODEL_NAMES:
        raise OxygenError(f'--model: expected one of {", ".join(MODEL_NAMES)}, got {args.model}')
    if args.params_file is not None and not args.params_file.is_file():
        raise OxygenError(f'--params-file: expected a YAML file, got {args.params_file}')
    for option, path in (('--json', args.json), ('--trace', args.trace)):
        if path is not None and not path.resolve().parent.is_dir():
            raise OxygenError(f'{option}: expected a file in an existing folder, got {path}')
    if args.loop and args.bag is None:
        raise OxygenError('--loop: expected together with --bag, got it alone')


def _isolate() -> None:
    """Keep the demo on this machine and, unless told otherwise, in a domain of its own."""
    from ..nodes.middleware.transport import use_large_data_transport

    use_large_data_transport()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    if 'ROS_DOMAIN_ID' not in os.environ:
        os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 100)
        print(
            'To look in from another terminal: '
            f'export ROS_DOMAIN_ID={os.environ["ROS_DOMAIN_ID"]} '
            'ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST',
            flush=True,
        )


def _node_arguments(
    args: argparse.Namespace,
    source: Source,
    record: Path,
) -> list[str]:
    parameters = [
        list_argument('cameras', source.cameras),
        list_argument('joints', source.joints),
        f'image_transport:={source.transports}',
        f'model.name:={args.model}',
        f'max_observation_age_ms:={args.max_observation_age_ms}',
        'autostart:=false',
    ]
    if args.checkpoint is not None:
        parameters.append(f'model.checkpoint:={args.checkpoint.resolve()}')
    if source.camera_map:
        parameters.append(list_argument('model.camera_map', source.camera_map))
    if args.trace is not None:
        parameters.append(f'record_file:={record}')
    arguments = ['--ros-args']
    if args.checkpoint is not None:
        from ..models.checkpoint import DEFAULT_ACTION_DT_S

        # Before the file, which may say better: no checkpoint knows it.
        arguments += ['-p', f'model.action_dt_s:={DEFAULT_ACTION_DT_S}']
    if args.params_file is not None:
        arguments += ['--params-file', str(args.params_file)]
    for parameter in parameters:
        arguments += ['-p', parameter]
    return arguments


def _print(figures: DemoFigures) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title='oxygen demo', show_header=False)
    reasons = ', '.join(
        f'{reason} {count}' for reason, count in sorted(figures.hold_reasons.items())
    )
    saved = float(kv_reduction(figures.kv_bytes_shared, figures.kv_bytes_isolated))
    less = 'not measured' if math.isnan(saved) else f'{100 * saved:.1f} % less'
    ttft = (
        'none' if figures.ttft_ms is None else f'{figures.ttft_ms:.0f} ms (median, at the client)'
    )
    tokens = (
        'none'
        if figures.tokens_per_s is None
        else f'{figures.tokens_per_s:.0f} (while text was live)'
    )
    rows = [
        ('control ticks', f'{figures.ticks}'),
        ('on time', f'{100 * figures.on_time:.1f} % (within 2 ms, not held, fresh)'),
        ('held', f'{figures.held}' + (f' ({reasons})' if reasons else '')),
        ('jitter, standard deviation', f'{figures.jitter_sd_ms:.2f} ms'),
        ('action chunks/s', f'{figures.chunks_per_s:.1f}'),
        ('actions/s (chunks/s x horizon)', f'{figures.actions_per_s:.0f}'),
        ('time to first token', ttft),
        ('text tokens/s', tokens),
        ('dialogue results', f'{figures.dialogue_results}'),
        ('scene graphs', f'{figures.scene_graphs}'),
        (
            'images encoded',
            f'{figures.images_encoded} = {figures.images_used} used '
            f'+ {figures.images_superseded} superseded',
        ),
        (
            'KV cache at its fullest',
            f'{figures.kv_bytes_shared:,} bytes shared, {figures.kv_bytes_isolated:,} '
            f'isolated ({less})',
        ),
    ]
    for name, value in rows:
        table.add_row(name, value)
    Console().print(table)
