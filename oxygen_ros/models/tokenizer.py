# SPDX-License-Identifier: Apache-2.0
"""Tokenizers from `tokenizers` JSON files, and the bytes behind byte-level tokens."""

from __future__ import annotations

from collections.abc import Sequence
import os
from pathlib import Path
import sys

from tokenizers import Tokenizer


def resource_path(name: str) -> Path:
    """Find a file of resource/: in the checkout, or in the share folder it was installed to.

    :raises FileNotFoundError: lists the places that were looked at.
    """
    here = Path(__file__)
    prefixes = [*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix]
    prefixes += [str(parent) for parent in here.parents]
    places = [here.parents[2] / 'resource' / name]
    places += [
        Path(prefix, 'share', 'oxygen_ros', 'resource', name) for prefix in prefixes if prefix
    ]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        f'{name}: not found; looked at ' + ', '.join(str(place) for place in dict.fromkeys(places))
    )


def bytes_to_unicode() -> dict[int, str]:
    """Return GPT-2's printable stand-in for each byte, which byte-level vocabularies use."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {
        byte: chr(256 + i) for i, byte in enumerate(moved)
    }


class ByteLevelTokenizer:
    """A byte-level tokenizer file; text is always plain text, never a special token."""

    def __init__(self, path: Path) -> None:
        """Load a file.

        :raises FileNotFoundError: there is no such file.
        :raises ValueError: the file lacks one of the special tokens <pad>, <bos>, <eos>.
        """
        if not path.is_file():
            raise FileNotFoundError(f'tokenizer: no file {path}')
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.encode_special_tokens = True  # what a user types is never control
        special = {
            token_id
            for token_id, token in self._tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        byte_of = {text: byte for byte, text in bytes_to_unicode().items()}
        self._bytes = {
            token_id: bytes(byte_of[char] for char in token)
            for token, token_id in self._tokenizer.get_vocab().items()
            if token_id not in special
        }
        self.vocab_size: int = self._tokenizer.get_vocab_size()
        self.pad_id, self.bos_id, self.eos_id = (
            self._special_id(path, token) for token in ('<pad>', '<bos>', '<eos>')
        )

    def _special_id(self, path: Path, token: str) -> int:
        token_id = self._tokenizer.token_to_id(token)
        if token_id is None:
            raise ValueError(f'tokenizer: expected a token {token} in {path}, found none')
        return int(token_id)

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, without any special token."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Sequence[int]) -> bytes:
        """UTF-8 bytes of tokens, special ones left out; may end within a character."""
        return b''.join(self._bytes.get(token, b'') for token in tokens)
