# SPDX-License-Identifier: Apache-2.0
"""The command `oxygen audit` as a person uses it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from oxygen_ros.cli import main
from oxygen_ros.memory.audit.audit_chain import AuditRecord, segment_paths
from oxygen_ros.memory.audit.audit_log import AuditLog, AuditRules
from oxygen_ros.memory.audit.audit_verify import verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a log of one run with two chunks."""
    folder = tmp_path / 'audit'
    log = AuditLog(folder, wall_ns=lambda: 1_700_000_000_500_000_000)
    log.append(
        [
            AuditRecord(
                'chunk',
                5,
                {'chunk_id': number, 'note': '=1+1, "é"'},
                {'id': 40 + number, 'stamp_ns': 4, 'cameras': {'front': 3}},
            )
            for number in (1, 2)
        ]
    )
    log.close()
    return folder


def spoil(folder: Path) -> Path:
    """Change one byte of the third record; return its file."""
    (path,) = segment_paths(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'front', b'frond')
    path.write_bytes(b''.join(lines))
    return path


def test_verify_says_how_far_it_is_good(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['audit', 'verify', str(folder)]) == 0
    link = verify(segment_paths(folder)).link
    assert capsys.readouterr().out == (
        f'ok: 4 records in 1 files, up to {link.seq}:{link.digest}\n'
    )
    expected = f'{link.seq}:{link.digest}'
    assert main(['audit', 'verify', '--expect', expected, *map(str, segment_paths(folder))]) == 0
    assert main(['audit', 'verify', '--expect', f'9:{link.digest}', str(folder)]) == 1


def test_verify_names_the_first_bad_record(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = spoil(folder)
    assert main(['audit', 'verify', str(folder)]) == 1
    assert capsys.readouterr().err.startswith(
        f'{path}:3: record 3: its hash does not match its content\n'
    )
    assert main(['audit', 'verify', '--json', str(folder)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found['ok'] is False
    assert found['faults'][0] == {
        'file': str(path),
        'line': 3,
        'seq': 3,
        'torn_tail': False,
        'reason': 'its hash does not match its content',
    }


def test_verify_without_a_head_has_to_be_asked_for(folder: Path) -> None:
    (folder / 'audit.head').unlink()
    assert main(['audit', 'verify', str(folder)]) == 1
    assert main(['audit', 'verify', '--no-head', str(folder)]) == 0


def test_a_keyed_log_needs_its_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key_file = tmp_path / 'key'
    key_file.write_text('a secret of the operator\n')
    AuditLog(tmp_path / 'audit', AuditRules(key=b'a secret of the operator')).close()
    assert main(['audit', 'verify', '--key-file', str(key_file), str(tmp_path / 'audit')]) == 0
    assert main(['audit', 'verify', str(tmp_path / 'audit')]) == 1
    key_file.write_text('short')
    assert main(['audit', 'verify', '--key-file', str(key_file), str(tmp_path / 'audit')]) == 2
    assert 'expected at least 16 bytes' in capsys.readouterr().err


def test_repair_moves_a_torn_tail_and_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = segment_paths(folder)
    assert main(['audit', 'repair', str(path)]) == 0
    assert 'nothing to repair' in capsys.readouterr().out
    with path.open('ab') as file:
        file.write(b'{"seq":5')
    assert main(['audit', 'verify', str(folder)]) == 1
    assert 'audit repair' in capsys.readouterr().err
    assert main(['audit', 'repair', str(folder)]) == 0
    assert '8 bytes moved to' in capsys.readouterr().out
    assert main(['audit', 'verify', str(folder)]) == 0
    spoil(folder)
    assert main(['audit', 'repair', str(folder)]) == 1


def test_show_prints_what_came_from_an_observation(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['audit', 'show', '--observation', '42', str(folder)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown['run'], shown['kind'], shown['body']['chunk_id']) == (1, 'chunk', 2)
    assert main(['audit', 'show', '--chunk', '1', '--run', '1', str(folder)]) == 0
    assert main(['audit', 'show', '--chunk', '1', '--run', '2', str(folder)]) == 1
    assert main(['audit', 'show', '--observation', '99', str(folder)]) == 1


def test_export_writes_a_table(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / 'out.csv'
    assert main(['audit', 'export', '--csv', str(out), str(folder)]) == 0
    with out.open(newline='', encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    assert [row['kind'] for row in rows] == ['segment', 'chunk', 'chunk', 'close']
    assert rows[1]['observation_id'] == '41'
    assert json.loads(rows[1]['cameras']) == {'front': 3}
    assert rows[1]['time_utc'] == '2023-11-14T22:13:20.500+00:00'
    # A spreadsheet must not take a cell for a formula, whatever a text says.
    cells = [value for row in rows for value in row.values()]
    assert not any(value.startswith(('=', '+', '-', '@')) for value in cells)
    capsys.readouterr()
    spoil(folder)
    assert main(['audit', 'export', '--csv', '-', str(folder)]) == 1
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3
    assert 'not all' in captured.err


@pytest.mark.parametrize(
    'argv', [[], ['verify'], ['verify', '--expect', 'x', 'f'], ['export', 'f'], ['burn', 'f']]
)
def test_wrong_use_ends_with_status_two(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(['audit', *argv])
    assert exit_info.value.code == 2


def test_help_is_there_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ['verify'], ['repair'], ['show'], ['export']):
        with pytest.raises(SystemExit) as exit_info:
            main(['audit', *command, '--help'])
        assert exit_info.value.code == 0
        assert 'oxygen audit' in capsys.readouterr().out


def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['audit', 'verify', str(tmp_path)]) == 2
    assert main(['audit', 'verify', str(tmp_path / 'none.jsonl')]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
