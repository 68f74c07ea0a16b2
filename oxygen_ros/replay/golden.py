# SPDX-License-Identifier: Apache-2.0
"""Goldens: a replay's outputs as a small JSON file, or as a bag with every value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .bag import Bag, BagError, open_bag
from .comparison import OutputRows, rows_of
from .outputs import ReplayResult, TOPICS
from .rows import make_row, Row

FORMAT = 'oxygen_replay'
VERSION = 1
START_TOPIC = '/oxygen/replay/start'  # of a bag: when the replay began, for relative times


def write_summary(result: ReplayResult, path: Path) -> None:
    """Write a summary: of each output a hash of all but floats, and a few floats.

    :raises OSError: the file cannot be written.
    """
    rows = rows_of(result)
    lines = [
        f'  {json.dumps(topic)}: [\n'
        + ',\n'.join(
            '    ' + json.dumps([row.stamp_ns, row.observation_id, row.digest, *row.floats])
            for row in rows[topic]
        )
        + '\n  ]'
        for topic in TOPICS
        if topic in rows
    ]
    head = json.dumps(
        {
            'format': FORMAT,
            'version': VERSION,
            'bag': Path(result.bag).name,
            'summary': result.summary.replace(result.bag, Path(result.bag).name),
            'problems': result.problems,
        }
    )
    path.write_text(
        f'{head[:-1]},\n "outputs": {{\n' + ',\n'.join(lines) + '\n}}\n', encoding='utf-8'
    )


def read_golden(path: Path) -> OutputRows:
    """Read a summary, or a bag that a replay recorded.

    :raises BagError: it is neither.
    """
    if path.suffix == '.json' or (path.is_file() and _begins_with_brace(path)):
        return _read_summary(path)
    with open_bag(path) as bag:
        return _read_bag(bag)


def _begins_with_brace(path: Path) -> bool:
    with path.open('rb') as file:
        return file.read(1) == b'{'


def _read_summary(path: Path) -> OutputRows:
    try:
        content: Any = json.loads(path.read_text(encoding='utf-8'))
        if content['format'] != FORMAT or content['version'] != VERSION:
            raise ValueError(f'format {content["format"]!r}, version {content["version"]!r}')
        return {
            topic: [
                Row(int(row[0]), int(row[1]), str(row[2]), tuple(map(float, row[3:])))
                for row in rows
            ]
            for topic, rows in content['outputs'].items()
        }
    except OSError as error:
        raise BagError(path, 'a golden that can be read', error.strerror or error) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BagError(path, 'a summary written by oxygen replay --json', error) from None


def _read_bag(bag: Bag) -> OutputRows:
    start_ns: int | None = None
    rows: dict[str, list[Row]] = {}
    for message in bag.messages({START_TOPIC, *TOPICS}):
        content = bag.deserialize(message)
        if message.topic == START_TOPIC:
            start_ns = int(content.sec) * 1_000_000_000 + int(content.nanosec)
        elif start_ns is not None:
            rows.setdefault(message.topic, []).append(
                make_row(message.stamp_ns - start_ns, message.topic, content)
            )
    if start_ns is None:
        raise BagError(
            bag.path, f'a bag recorded by oxygen replay ({START_TOPIC})', 'one without it'
        )
    return rows
