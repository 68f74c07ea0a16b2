# SPDX-License-Identifier: Apache-2.0
"""Scene graphs are constrained through any checkpoint's tokenizer, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, decoders, models, Tokenizer

pytest.importorskip('llguidance', reason='needs llguidance, which the grammars are run by')

from oxygen_ros.memory.scene.scene_format import SceneFormat
from oxygen_ros.memory.scene.scene_grammar import SceneGrammar
from oxygen_ros.memory.scene.scene_text import parse_scene
from oxygen_ros.memory.scene.token_constraint import ConstrainedVocabulary
from oxygen_ros.models.text_tokenizer import TextTokenizer, TOKENIZER_NAME
from oxygen_ros.models.tokenizer import bytes_to_unicode

CAMERAS = ('front', 'wrist')
NOT_IN_UTF8 = (0xC0, 0xC1, *range(0xF5, 0x100))


def byte_level() -> Tokenizer:
    """Return a vocabulary as SmolVLM2's: bytes that no text holds have no token."""
    pieces = [text for byte, text in bytes_to_unicode().items() if byte not in NOT_IN_UTF8]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def sentence_piece() -> Tokenizer:
    """Return a vocabulary as Gemma's: words beside a token for each byte, some of them twice."""
    pieces = [f'<0x{byte:02X}>' for byte in range(256)] + ['\u2581', '\u2581cup', 'cup', 'a', '0']
    tokenizer = Tokenizer(
        models.BPE({piece: i for i, piece in enumerate(pieces)}, [], byte_fallback=True)
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace('\u2581', ' '), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


@pytest.mark.parametrize('make', [byte_level, sentence_piece])
def test_any_choice_among_allowed_tokens_is_a_scene_graph(
    make: Callable[[], Tokenizer], tmp_path: Path
) -> None:
    file = make()
    file.add_special_tokens([AddedToken('<pad>', special=True), AddedToken('<eos>', special=True)])
    file.save(str(tmp_path / TOKENIZER_NAME))
    size = file.get_vocab_size() + 3  # an embedding may have rows to spare
    tokenizer = TextTokenizer(tmp_path, size)
    token_bytes = [tokenizer.decode([token]) or None for token in range(size)]
    scene_format = SceneFormat(CAMERAS, 4, 2, 1)
    grammar = SceneGrammar(
        scene_format, ConstrainedVocabulary(token_bytes, tokenizer.eos_ids[0], size), 512
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        constraint, tokens = grammar.constraint(), list[int]()
        while not constraint.is_complete:
            token = int(rng.choice(np.flatnonzero(constraint.allowed())))
            constraint.advance(token)
            tokens.append(token)
        assert len(tokens) <= grammar.max_tokens
        parse_scene(tokenizer.decode(tokens).decode(), scene_format, {})
