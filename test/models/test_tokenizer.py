# SPDX-License-Identifier: Apache-2.0
"""The byte-level tokenizer file and where it is found."""

from __future__ import annotations

import json
from pathlib import Path
import subprocess
import sys

import pytest

from oxygen_ros.models import tokenizer as tokenizer_module
from oxygen_ros.models.tokenizer import ByteLevelTokenizer, resource_path

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope='module')
def tokenizer() -> ByteLevelTokenizer:
    """Return the project's tokenizer."""
    return ByteLevelTokenizer(resource_path('tokenizer.json'))


@pytest.mark.parametrize('text', ['', 'plain', ' two  spaces\n\ttab', 'é 你好 🤖', '\x00\x7f'])
def test_token_ids_are_the_utf8_bytes(tokenizer: ByteLevelTokenizer, text: str) -> None:
    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text.encode()


def test_typed_special_tokens_are_plain_text(tokenizer: ByteLevelTokenizer) -> None:
    text = 'stop <eos> now <bos><pad>'
    assert tokenizer.encode(text) == list(text.encode())


def test_special_and_unknown_tokens_have_no_bytes(tokenizer: ByteLevelTokenizer) -> None:
    special = [tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, 263, 9999]
    assert tokenizer.decode([72, *special, 105]) == b'Hi'
    assert tokenizer.vocab_size == 264


def test_half_a_character_is_given_as_it_is(tokenizer: ByteLevelTokenizer) -> None:
    assert tokenizer.decode('é'.encode()[:1]) == b'\xc3'


def test_the_committed_file_is_what_the_script_writes(tmp_path: Path) -> None:
    code = (
        f'import sys; sys.path.insert(0, {str(ROOT / "scripts")!r}); '
        f'import make_tokenizer as m; m.make_tokenizer().save({str(tmp_path / "t")!r})'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
    assert json.loads((tmp_path / 't').read_text()) == json.loads(
        (ROOT / 'resource' / 'tokenizer.json').read_text()
    )


def test_resources_are_found_where_they_were_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = tmp_path / 'share' / 'oxygen_ros' / 'resource'
    share.mkdir(parents=True)
    (share / 'only_installed.json').write_text('{}')
    with pytest.raises(FileNotFoundError, match='only_installed.json: not found; looked at'):
        resource_path('only_installed.json')
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    assert resource_path('only_installed.json') == share / 'only_installed.json'
    monkeypatch.delenv('AMENT_PREFIX_PATH')
    module = tmp_path / 'lib' / 'python3' / 'site-packages' / 'oxygen_ros' / 'models' / 'm.py'
    monkeypatch.setattr(tokenizer_module, '__file__', str(module))
    assert resource_path('only_installed.json') == share / 'only_installed.json'


def test_a_file_without_special_tokens_is_refused(tmp_path: Path) -> None:
    content = json.loads((ROOT / 'resource' / 'tokenizer.json').read_text())
    content['added_tokens'] = content['added_tokens'][:2]
    path = tmp_path / 'tokenizer.json'
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match='expected a token <eos> in .*tokenizer.json'):
        ByteLevelTokenizer(path)
    with pytest.raises(FileNotFoundError, match='tokenizer: no file'):
        ByteLevelTokenizer(tmp_path / 'absent.json')
