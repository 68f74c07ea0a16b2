# SPDX-License-Identifier: Apache-2.0
"""Equality with transformers on small outputs that are kept here."""

from __future__ import annotations

import json
from pathlib import Path
import shutil

from checkpoints import small_model
from parity_controls import CONTROLS, largest_effect
import pytest
from safetensors.torch import load_file, save_file

from oxygen_ros.cli import main
from oxygen_ros.models.make_checkpoint import make_tokenizer
from oxygen_ros.models.parity import check_folder
from oxygen_ros.models.text_tokenizer import TextTokenizer

FIXTURES = Path(__file__).parent / 'fixtures'
NAMES = ('pi05', 'pi0', 'paligemma')


@pytest.mark.parametrize('backend', ['reference', 'sdpa'])
@pytest.mark.parametrize('name', NAMES)
def test_model_equals_its_original(name: str, backend: str) -> None:
    differences = check_folder(FIXTURES / name, backend)
    assert [item for item in differences if not item.is_within] == []
    assert max(item.value for item in differences) < 1e-5


@pytest.mark.parametrize('control', CONTROLS)
@pytest.mark.parametrize('name', ['pi05', 'pi0'])
def test_a_mistake_on_purpose_is_seen(name: str, control: str) -> None:
    assert largest_effect(FIXTURES / name, control) > 0.1


def test_tokens_and_masks_equal_those_of_transformers(tmp_path: Path) -> None:
    make_tokenizer().save(str(tmp_path / 'tokenizer.json'))
    tokenizer = TextTokenizer(tmp_path, 264)
    for row in json.loads((FIXTURES / 'tokens.json').read_text()):
        ours = tokenizer.encode(row['text'])[:200]
        assert ours == [
            token for token, valid in zip(row['ids'], row['mask'], strict=True) if valid
        ]


def test_what_a_user_types_is_never_control() -> None:
    tokens = small_model('pi05').text_prompt('<eos>')
    assert tokens == [258, *b'<eos>\n']


def test_words_come_back_as_they_went() -> None:
    model = small_model('pi05')
    tokens = model.text_prompt('wo ist die größte Tasse?')
    assert model.detokenize(tokens) == 'wo ist die größte Tasse?\n'.encode()


def test_parity_command_says_what_is_beyond(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['parity', str(FIXTURES / 'pi0')]) == 0
    folder = Path(shutil.copytree(FIXTURES / 'pi0', tmp_path / 'pi0'))
    io = load_file(folder / 'io.safetensors')
    io['actions'][1, 2, 3] += 1.0
    save_file(io, folder / 'io.safetensors')
    capsys.readouterr()
    assert main(['parity', str(folder), '--backend', 'sdpa']) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2:4] for line in lines if 'BEYOND' in line] == [['actions', '1.0e+00']]
    del io['noise']
    save_file(io, folder / 'io.safetensors')
    assert main(['parity', str(folder)]) == 1
    assert "expected a tensor 'noise', found none" in capsys.readouterr().err
