# SPDX-License-Identifier: Apache-2.0
"""Writes config/oxygen.yaml and doc/parameters.md from the settings.

python -m oxygen_ros.robot.parameter_files
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
import sys

import yaml

from ..setting import Setting
from .settings import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
COMMAND = 'python -m oxygen_ros.robot.parameter_files'
_INDENT = '  '


def _yaml(value: object) -> str:
    """Return a value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix('\n').removesuffix('\n...')


def _notes(entry: Setting) -> str:
    return '; '.join(note for note in (entry.unit, entry.range_text) if note)


def params_file(settings: Iterable[Setting] = tuple(SETTINGS.values())) -> str:
    """Return a parameter file with every parameter at its default."""
    lines = [
        '# Every parameter of oxygen_node at its default, for any node name and namespace.',
        f'# Written by {COMMAND}; copy it, and keep the lines that you change.',
        '/**:',
        f'{_INDENT}ros__parameters:',
    ]
    group = ''
    for entry in settings:
        *path, name = entry.name.split('.')
        depth = 2 + len(path)
        if path and path[0] != group:
            group = path[0]
            lines.append(f'{_INDENT * 2}{group}:')
        notes = _notes(entry)
        comment = f'{entry.text}{f" ({notes})" if notes else ""}'
        indent = _INDENT * depth
        lines += [f'{indent}# {comment}', f'{indent}{name}: {_yaml(entry.default)}']
    return '\n'.join(lines) + '\n'


def document(settings: Iterable[Setting] = tuple(SETTINGS.values())) -> str:
    """Return the table for people."""
    lines = [
        '# Parameters of oxygen_node',
        '',
        f'Written by `{COMMAND}` from the fields that declare them ([architecture.md]'
        '(architecture.md#settings)).',
        '',
        'Parameters marked live may be changed at any time (`ros2 param set`); the node checks a '
        'change together with all other values, and applies it as a whole or refuses it with '
        'the reason. Those marked start are read at the start of the process. The others may be '
        'changed while the node is unconfigured.',
        '',
        'In a list of names, an empty name means none, since ROS has no empty lists of a known '
        'type. At the start a whole number is accepted for a real one.',
        '',
        'Those under `baseline` turn the node into a baseline of the benchmark; do not set them '
        'on a robot. The node warns of each that is not at its default.',
        '',
        '| name | type | default | unit | range | live | meaning |',
        '| --- | --- | --- | --- | --- | --- | --- |',
    ]
    for entry in settings:
        live = 'start' if entry.fixed else 'yes' if entry.live else ''
        lines.append(
            f'| `{entry.name}` | {entry.type_name} | `{_yaml(entry.default)}` | {entry.unit} '
            f'| {entry.range_text} | {live} | {entry.text} |'
        )
    return '\n'.join(lines) + '\n'


def main() -> int:
    """Write both files into the checkout."""
    (ROOT / 'config' / 'oxygen.yaml').write_text(params_file(), encoding='utf-8')
    (ROOT / 'doc' / 'parameters.md').write_text(document(), encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
