# SPDX-License-Identifier: Apache-2.0
"""The tokenizer of a checkpoint folder, and the bytes behind its tokens."""

from __future__ import annotations

from collections.abc import Sequence
import json
from pathlib import Path
import re

from tokenizers import Tokenizer

from .errors import CheckpointError
from .tokenizer import bytes_to_unicode

TOKENIZER_NAME = 'tokenizer.json'
_END_TOKENS = ('<eos>', '</s>', '<|endoftext|>', '<|im_end|>', '<end_of_utterance>')
_BYTE_TOKEN = re.compile(r'<0x([0-9A-F]{2})>')


class TextTokenizer:
    """A `tokenizers` file: byte-level, or SentencePiece-like with byte fallback.

    Text is always plain text: a special token that a user types is never control.

    :param folder: holds tokenizer.json.
    :param vocab_size: rows of the model's embedding.
    :raises CheckpointError: no such file, unreadable, or with tokens that the model lacks.
    """

    def __init__(self, folder: Path, vocab_size: int) -> None:
        path = folder / TOKENIZER_NAME
        if not path.is_file():
            raise CheckpointError(
                f'{folder}: expected {TOKENIZER_NAME} (of the tokenizer that '
                'policy_preprocessor.json names, saved by its save_pretrained), found none'
            )
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
            decoder = json.dumps(json.loads(path.read_text(encoding='utf-8')).get('decoder'))
        except Exception as error:  # the library raises bare Exception
            raise CheckpointError(f'{path}: expected a tokenizer file, got: {error}') from error
        self._tokenizer.encode_special_tokens = True
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        largest = max(vocabulary.values(), default=-1)
        if not 0 <= largest < vocab_size:
            raise CheckpointError(
                f'{path}: expected tokens 0 to {vocab_size - 1} as the model '
                f'has, got {largest} as the largest'
            )
        special = {
            token_id
            for token_id, token in self._tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        to_bytes = _byte_level if 'ByteLevel' in decoder else _sentence_piece
        self._bytes = {
            token_id: to_bytes(token)
            for token, token_id in vocabulary.items()
            if token_id not in special
        }
        self.eos_ids = tuple(vocabulary[token] for token in _END_TOKENS if token in vocabulary)
        if not self.eos_ids:
            raise CheckpointError(
                f'{path}: expected an end of text, one of {", ".join(_END_TOKENS)}; found none'
            )

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, with the first token that the file's template says; no padding."""
        return list(self._tokenizer.encode(text, add_special_tokens=True).ids)

    def decode(self, tokens: Sequence[int]) -> bytes:
        """UTF-8 bytes of tokens, special ones left out; may end within a character."""
        return b''.join(self._bytes.get(token, b'') for token in tokens)


_BYTE_OF = {text: byte for byte, text in bytes_to_unicode().items()}


def _byte_level(token: str) -> bytes:
    if all(char in _BYTE_OF for char in token):
        return bytes(_BYTE_OF[char] for char in token)
    return token.encode()  # an added word


def _sentence_piece(token: str) -> bytes:
    match = _BYTE_TOKEN.fullmatch(token)
    return bytes([int(match[1], 16)]) if match else token.replace('\u2581', ' ').encode()
