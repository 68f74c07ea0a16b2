# SPDX-License-Identifier: Apache-2.0
"""`oxygen report`: a self-contained page from a recording or from a benchmark's JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
import json
from pathlib import Path
from typing import Any, TYPE_CHECKING

from ..errors import OxygenError
from ..figures.ticks import MAX_OBSERVATION_AGE_MS

if TYPE_CHECKING:
    from ..replay.bag import Bag
    from .drawing import Picture
    from .page import Page
    from .recording import Recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        'source',
        type=Path,
        metavar='BAG|JSON',
        help='a rosbag2 recording of ~/latency, ~/target, ~/action_chunk, '
        '~/scene_graph and ~/timeline, or what `oxygen bench --json` wrote',
    )
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=Path('report.html'),
        metavar='FILE',
        help='the page (default: %(default)s)',
    )
    parser.add_argument('--png', type=Path, metavar='DIR', help='write the plots there as well')
    parser.add_argument(
        '--trace',
        type=Path,
        metavar='FILE',
        help='write what happened when, for ui.perfetto.dev (recordings only)',
    )
    parser.add_argument(
        '--node',
        metavar='NAME',
        help='whose figures, where a recording holds those of several nodes',
    )
    parser.add_argument(
        '--max-observation-age-ms',
        type=float,
        default=MAX_OBSERVATION_AGE_MS,
        metavar='MS',
        help='a target from an older observation is not on time (default: %(default)s)',
    )


def run(args: argparse.Namespace) -> int:
    """Write the page; return the exit status: 1 when the recording was incomplete."""
    _check(args)
    from .drawing import require_matplotlib

    require_matplotlib()
    whole = True
    if args.source.suffix == '.json':
        page = _bench_page(args.source)
    else:
        page, recording = _recording_page(args)
        whole = not page.notes
        if args.trace is not None:
            from .perfetto import write_events
            from .recording_trace import trace_events

            write_events(args.trace, trace_events(recording))
            print(f'wrote {args.trace}: open it on ui.perfetto.dev')
    from .page import render

    args.output.write_text(render(page))
    print(
        f'wrote {args.output}: {args.output.stat().st_size / 1e6:.2f} MB, '
        f'{len(page.pictures)} plots, {len(page.figures)} figures'
    )
    if args.png is not None:
        _write_pictures(args.png, page.pictures)
    for note in page.notes:
        print(note)
    return 0 if whole else 1


def read_bench(path: Path) -> tuple[dict[str, float], dict[str, str]]:
    """Return the numbers and the texts of a benchmark's JSON, by dotted name.

    :raises OxygenError: the file is not JSON, or not an object with numbers in it.
    """
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise OxygenError(f'{path}: expected a JSON file of a benchmark, got: {error}') from None
    if not isinstance(content, dict):
        raise OxygenError(f'{path}: expected a JSON object, got {type(content).__name__}')
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for name, value in _leaves(content, ''):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            texts[name] = str(value)
        else:
            numbers[name] = value
    if not numbers:
        raise OxygenError(f'{path}: expected figures, got no number')
    return numbers, texts


def _check(args: argparse.Namespace) -> None:
    if not args.source.exists():
        raise OxygenError(f'{args.source}: expected a recording or a JSON file, found nothing')
    for option, path in (('--output', args.output), ('--trace', args.trace)):
        if path is not None and not path.resolve().parent.is_dir():
            raise OxygenError(f'{option}: expected a file in an existing folder, got {path}')
    if args.trace is not None and args.source.suffix == '.json':
        raise OxygenError('--trace: expected a recording, got a JSON file, which holds no times')
    if not args.max_observation_age_ms > 0.0:
        raise OxygenError(
            '--max-observation-age-ms: expected a number above 0, got '
            f'{args.max_observation_age_ms}'
        )


def _bench_page(path: Path) -> Page:
    from ..figures.claims import compare
    from .bench_plots import pictures_of
    from .page import Page

    figures, texts = read_bench(path)
    return Page(
        'oxygen_ros benchmark',
        str(path),
        [],
        compare(figures),
        pictures_of(figures),
        figures,
        texts,
    )


def _leaves(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f'{prefix}.{key}' if prefix else str(key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _leaves(part, f'{prefix}.{index}' if prefix else str(index))
    else:
        yield prefix, value


def _recording_page(args: argparse.Namespace) -> tuple[Page, Recording]:
    from ..figures.claims import compare
    from ..replay.bag import open_bag
    from .page import Page
    from .recorded_figures import figures_of
    from .recording_plots import drops_text, pictures_of

    with open_bag(args.source) as bag:
        recording = _read(bag, args.node)
        notes = list(bag.damage)
    if recording.num_unreadable:
        notes.append(f'{recording.num_unreadable} messages could not be read')
    if notes:
        notes.insert(0, recording.summary)
    max_age_ms = args.max_observation_age_ms
    figures = figures_of(recording, max_age_ms)
    texts = {'node': recording.node, 'recording': recording.summary, 'held': drops_text(recording)}
    page = Page(
        'oxygen_ros latency',
        f'{recording.node} in {recording.summary}',
        notes,
        compare(figures),
        pictures_of(recording, max_age_ms),
        figures,
        texts,
    )
    return page, recording


def _read(bag: Bag, node: str | None) -> Recording:
    from rich.console import Console
    from rich.progress import Progress

    from .recording import choose_node, num_messages, read_recording

    node = choose_node(bag, node)
    total = num_messages(bag, node)
    # Not on stdout, which may be read by a program.
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task('reading', total=total)
        return read_recording(bag, node, lambda done: progress.update(task, completed=done))


def _write_pictures(folder: Path, pictures: Sequence[Picture]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        (folder / f'{picture.name}.png').write_bytes(picture.png)
    print(f'wrote {len(pictures)} plots to {folder}')
