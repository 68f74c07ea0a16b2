# SPDX-License-Identifier: Apache-2.0
"""Constrained decoding: which token may come next, so that the text obeys a grammar."""

from __future__ import annotations

from collections.abc import Sequence

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
import numpy as np
from numpy.typing import NDArray

_NEEDED_BYTES = (0x0A, *range(0x20, 0x7F))


class _Vocabulary:
    """What llguidance asks of a tokenizer: the bytes of each token, and which ones are special."""

    def __init__(self, token_bytes: Sequence[bytes | None], eos_token: int) -> None:
        # A special token stands for no text. It still needs a distinct name here.
        self.tokens = [
            b'<special_%d>' % token if text is None else text
            for token, text in enumerate(token_bytes)
        ]
        self.special_token_ids = [token for token, text in enumerate(token_bytes) if text is None]
        self.eos_token_id = eos_token
        self.bos_token_id: int | None = None
        self._token_of = {text: token for token, text in enumerate(token_bytes) if text}
        self._longest = max(map(len, self._token_of))

    def __call__(self, text: bytes | str) -> list[int]:
        # llguidance tokenizes forced text with this; the masks do not depend on it.
        left = text.encode() if isinstance(text, str) else text
        tokens: list[int] = []
        while left:
            # Only what a grammar forces comes here: ASCII, of which each byte has a token.
            piece = next(
                left[:length]
                for length in range(min(self._longest, len(left)), 0, -1)
                if left[:length] in self._token_of
            )
            tokens.append(self._token_of[piece])
            left = left[len(piece) :]
        return tokens


class ConstrainedVocabulary:
    """The bytes of each token of a model, prepared once for any number of grammars.

    :param token_bytes: text of each token by token id; None for a special token. Each printable
        ASCII character and the newline must have a token of its own, or text that a grammar needs
        might have none. Byte-level vocabularies often lack bytes that no text holds.
    :param eos_token: end of text, a special token.
    :param vocab_size: width of the model's logits, if that is more than the number of tokens.
    :raises ValueError: names what was expected and what came.
    """

    def __init__(
        self, token_bytes: Sequence[bytes | None], eos_token: int, vocab_size: int | None = None
    ) -> None:
        missing = {bytes([byte]) for byte in _NEEDED_BYTES} - set(token_bytes)
        if missing:
            raise ValueError(
                f'token_bytes: expected a token for each byte, got none for {min(missing)!r}'
            )
        if not 0 <= eos_token < len(token_bytes) or token_bytes[eos_token] is not None:
            raise ValueError(f'eos_token: expected the id of a special token, got {eos_token}')
        self.vocab_size = len(token_bytes) if vocab_size is None else vocab_size
        if self.vocab_size < len(token_bytes):
            raise ValueError(f'vocab_size: expected at least {len(token_bytes)}, got {vocab_size}')
        self.eos_token = eos_token
        # Slices speed up free text over large vocabularies; a closed grammar has no free text.
        self.tokenizer = LLTokenizer(
            TokenizerWrapper(_Vocabulary(token_bytes, eos_token)),
            n_vocab=self.vocab_size,
            slices=[],
        )


class TokenConstraint:
    """One text under construction. Used by one thread at a time.

    :param matcher: a fresh matcher; this object owns it.
    """

    def __init__(self, matcher: LLMatcher, vocab_size: int) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size

    @property
    def is_complete(self) -> bool:
        """Whether the text is whole and nothing can be added; decoding ends here."""
        return self._matcher.is_stopped() and self._matcher.is_accepting()

    def allowed(self) -> NDArray[np.bool_]:
        """Return which tokens may come next: [vocab_size] bool; the end of text when complete."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        return np.unpackbits(bits, count=self._vocab_size, bitorder='little').view(np.bool_)

    def forced(self) -> list[int]:
        """Return the tokens that must come next, whatever the model says; maybe none."""
        return list(self._matcher.compute_ff_tokens())

    def advance(self, token: int) -> None:
        """Add the chosen token.

        :raises ValueError: the token was not allowed; the constraint is then unusable.
        """
        if not self._matcher.consume_token(token):
            raise ValueError(f'token: expected an allowed one, got {token}')


class Grammar:
    """A grammar compiled for one vocabulary, from which constraints are made cheaply.

    :param lark: the grammar in the Lark dialect of llguidance.
    :raises ValueError: the grammar does not compile.
    """

    def __init__(self, lark: str, vocabulary: ConstrainedVocabulary) -> None:
        self.vocab_size = vocabulary.vocab_size
        self._matcher = LLMatcher(vocabulary.tokenizer, lark, log_level=0)
        if self._matcher.is_error():
            raise ValueError(f'grammar: {self._matcher.get_error()}')

    def constraint(self) -> TokenConstraint:
        """Return a constraint at the start of a text."""
        return TokenConstraint(self._matcher.deep_copy(), self.vocab_size)
