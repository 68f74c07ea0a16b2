# SPDX-License-Identifier: Apache-2.0
"""The command `oxygen audit`: verify, repair, show, export."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import csv
from datetime import datetime, timezone
import json
from pathlib import Path
import sys
from typing import Any, TextIO

from .audit_chain import Link, read_key, segment_paths
from .audit_records import find_records
from .audit_repair import repair
from .audit_verify import AuditReport, verify

_COLUMNS = (
    'seq',
    'kind',
    'stamp_ns',
    'wall_ns',
    'observation_id',
    'observation_stamp_ns',
    'cameras',
    'state_stamp_ns',
    'prefix_hash',
    'model_checksum',
    'parameters_hash',
    'software',
    'body',
    'prev',
    'hash',
)


def _link(text: str) -> Link:
    seq, _, digest = text.partition(':')
    if not seq.isdigit() or len(digest) != 64:
        raise argparse.ArgumentTypeError(f'expected SEQ:HASH with 64 hex digits, got {text!r}')
    return Link(int(seq), digest)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = 'Exit status: 0 all is well, 1 something is wrong with the log, 2 wrong use.'
    commands = parser.add_subparsers(dest='audit_command', required=True, metavar='COMMAND')

    def command(name: str, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument('--key-file', metavar='FILE', help='key of a keyed log')
        sub.add_argument(
            'files', nargs='+', metavar='FILE', type=Path, help='segments, or folders of them'
        )
        return sub

    check = command(
        'verify',
        'Check that the log is whole and unchanged; name the first bad '
        'record. Segments are taken in the order of their numbers.',
    )
    check.add_argument(
        '--partial', action='store_true', help='the oldest segments may have been removed'
    )
    check.add_argument(
        '--no-head',
        action='store_true',
        help='do not ask for audit.head; records cut off at the end go unnoticed',
    )
    check.add_argument(
        '--expect',
        type=_link,
        metavar='SEQ:HASH',
        help='a record that was noted elsewhere and must be there',
    )
    check.add_argument('--json', action='store_true', help='print the result as JSON')
    command('repair', 'Move what a write that did not end left at the end of a file aside.')
    show = command('show', 'Print the records that match.')
    show.add_argument('--observation', type=int, metavar='ID')
    show.add_argument('--chunk', type=int, metavar='ID')
    show.add_argument('--kind', default='')
    show.add_argument(
        '--run',
        dest='begin',
        type=int,
        metavar='SEGMENT',
        help='only the run that began with this segment',
    )
    export = command('export', 'Write all records as a table.')
    export.add_argument('--csv', required=True, metavar='OUT', help='file to write; - for stdout')


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = segment_paths(path) if path.is_dir() else [path]
        if not found:
            raise ValueError(f'{path}: expected audit-*.jsonl files, found none')
        files += found
    # By name, so that a shell's order of many folders does not matter; the chain is then checked.
    return sorted(files, key=lambda path: (path.parent, path.name))


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    command = arguments.audit_command
    try:
        key = read_key(arguments.key_file) if arguments.key_file else None
        return int(_COMMANDS[command](arguments, _files(arguments.files), key))
    except (OSError, ValueError) as error:
        print(f'oxygen audit {command}: {error}', file=sys.stderr)
        return 1 if command == 'repair' else 2


def _verify(arguments: argparse.Namespace, files: list[Path], key: bytes | None) -> int:
    report = verify(
        files,
        key,
        partial=arguments.partial,
        with_head=not arguments.no_head,
        expected=arguments.expect,
    )
    if arguments.json:
        print(json.dumps(_as_json(report)))
    elif report.is_ok:
        print(
            f'ok: {report.num_records} records in {report.num_files} files, up to '
            f'{report.link.seq}:{report.link.digest}'
            + ('' if report.ends_closed else ', not closed')
        )
    else:
        for fault in report.faults:
            print(fault, file=sys.stderr)
    return 0 if report.is_ok else 1


def _as_json(report: AuditReport) -> dict[str, object]:
    return {
        'ok': report.is_ok,
        'records': report.num_records,
        'files': report.num_files,
        'seq': report.link.seq,
        'hash': report.link.digest,
        'closed': report.ends_closed,
        'faults': [
            {
                'file': str(fault.path),
                'line': fault.line,
                'seq': fault.seq,
                'reason': fault.reason,
                'torn_tail': fault.is_torn_tail,
            }
            for fault in report.faults
        ],
    }


def _repair(arguments: argparse.Namespace, files: list[Path], key: bytes | None) -> int:
    for path in files:
        done = repair(path, key)
        print(
            f'{path}: nothing to repair'
            if done.moved_to is None
            else f'{path}: {done.num_bytes} bytes moved to {done.moved_to}'
        )
    return 0


def _show(arguments: argparse.Namespace, files: list[Path], key: bytes | None) -> int:
    found = False
    for run, fields in find_records(
        files,
        key,
        observation_id=arguments.observation,
        chunk_id=arguments.chunk,
        kind=arguments.kind,
    ):
        if arguments.begin in (None, run):
            found = True
            print(json.dumps({'run': run, **fields}, ensure_ascii=False))
    if not found:
        print('oxygen audit show: no such record', file=sys.stderr)
    return 0 if found else 1


def _row(fields: dict[str, Any]) -> list[object]:
    observation = fields.get('observation') or {}
    values = {
        **fields,
        'observation_id': observation.get('id', ''),
        'observation_stamp_ns': observation.get('stamp_ns', ''),
        'state_stamp_ns': observation.get('state_stamp_ns', ''),
        'cameras': json.dumps(observation.get('cameras', {}), ensure_ascii=False),
        'body': json.dumps(fields.get('body'), ensure_ascii=False),
    }
    return [values.get(column, '') for column in _COLUMNS]


def _export_rows(file: TextIO, files: list[Path], key: bytes | None) -> int:
    writer = csv.writer(file)
    writer.writerow([*_COLUMNS, 'time_utc'])
    num = 0
    for _, fields in find_records(files, key):
        time = datetime.fromtimestamp(fields['wall_ns'] / 1e9, timezone.utc)
        writer.writerow([*_row(fields), time.isoformat(timespec='milliseconds')])
        num += 1
    return num


def _export(arguments: argparse.Namespace, files: list[Path], key: bytes | None) -> int:
    if arguments.csv == '-':
        _export_rows(sys.stdout, files, key)
    else:
        with Path(arguments.csv).open('w', newline='', encoding='utf-8') as file:
            print(f'{_export_rows(file, files, key)} records written to {arguments.csv}')
    report = verify(files, key, partial=True, with_head=False)
    for fault in report.faults:
        print(f'oxygen audit export: not all: {fault}', file=sys.stderr)
    return 0 if report.is_ok else 1


_COMMANDS = {'verify': _verify, 'repair': _repair, 'show': _show, 'export': _export}
