# SPDX-License-Identifier: Apache-2.0
"""Write resource/tokenizer.json: token i is byte i; then <pad>, <bos>, <eos> and five reserved."""

from pathlib import Path
import sys

from tokenizers import AddedToken, decoders, models, pre_tokenizers, Tokenizer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from oxygen_ros.models.tokenizer import bytes_to_unicode  # noqa: E402

SPECIAL_TOKENS = ('<pad>', '<bos>', '<eos>', *(f'<reserved_{i}>' for i in range(5)))


def make_tokenizer() -> Tokenizer:
    """Build the byte-level tokenizer: 256 bytes, no merges, 8 special tokens."""
    vocab = {text: byte for byte, text in bytes_to_unicode().items()}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL_TOKENS])
    return tokenizer


if __name__ == '__main__':
    (ROOT / 'resource').mkdir(exist_ok=True)
    make_tokenizer().save(str(ROOT / 'resource' / 'tokenizer.json'))
