# SPDX-License-Identifier: Apache-2.0
"""What of the memory goes into the seed of a question, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import re

from ..limits import bounded, MAX_PAGE
from .query import MemoryQuery
from .reader import MemoryEntry, MemoryReader
from .records import EntryKind
from .words import singular, word

_STOP_TEXT = """
a about all am an and any are at be been can could did do does for from had has have how i if in is
it its last me my now of on or our please see seen tell that the their them then there these they
this those time to was we were what when where which who why will with you your
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_HEADER = 'Known:\n'
# What was said or told may hold neither a citation nor the end of its own quotation.
_PLAIN = str.maketrans({'_': ' ', '[': '(', ']': ')', '"': "'"})


@dataclass(frozen=True, slots=True)
class Recollection:
    """Lines for the seed, and what they cite."""

    text: str  # empty: nothing was found, or nothing fits
    entries: tuple[MemoryEntry, ...] = ()

    @property
    def cited(self) -> tuple[int, ...]:
        """Ids of the entries."""
        return tuple(entry.entry_id for entry in self.entries)


def question_words(question: str) -> list[str]:
    """Return the words of a question that are worth looking for, each once."""
    found: dict[str, None] = {}
    for part in re.findall(r'\w+', bounded(question).casefold()):
        if part not in _STOP_WORDS:
            found[singular(word(part))] = None
    return list(found)[:16]


def entry_line(entry: MemoryEntry, now_ns: int) -> str:
    """Return one line about an entry: its citation, what it says, how long ago it was so."""
    text = ' '.join(entry.text.translate(_PLAIN).split())
    if entry.kind is EntryKind.UTTERANCE:
        text = f'said "{text}"'
    elif entry.kind is EntryKind.INSTRUCTION:
        text = f'was told "{text}"'
    age_s = max(now_ns - entry.last_ns, 0) // 1_000_000_000
    doubt = ' (contradicts the facts)' if entry.verdict == 'contradicted' else ''
    return f'[{entry.citation}] {text}, {age_s} s ago{doubt}\n'


def recall(
    reader: MemoryReader,
    question: str,
    now_ns: int,
    budget: int,
    count_tokens: Callable[[str], int],
) -> Recollection:
    """Return what is remembered of a question's words, the best match first.

    The newest entries with any of the words are ranked by how many of them they hold, then by how
    new they are; of equal texts the newest is taken.

    :param now_ns: ROS time.
    :param budget: the most tokens that the text may take.
    :param count_tokens: number of tokens of a text.
    :raises QueryTooSlow: stopped at the reader's time limit.
    :raises StoreUnavailable: the store cannot be read now.
    """
    words = question_words(question)
    if not words:
        return Recollection('')
    query = MemoryQuery(words=' '.join(words), any_words=True, limit=MAX_PAGE)
    found = {entry.text: entry for entry in reversed(reader.find(query).entries)}

    def rank(entry: MemoryEntry) -> tuple[int, int]:
        parts = set(re.findall(r'[^\W_]+', entry.text.casefold()))
        num_shared = sum(all(part in parts for part in name.split('_')) for name in words)
        return (-num_shared, -entry.entry_id)

    text, chosen = _HEADER, list[MemoryEntry]()
    for entry in sorted(found.values(), key=rank):
        line = entry_line(entry, now_ns)
        if count_tokens(text + line) <= budget:
            text += line
            chosen.append(entry)
    return Recollection(text if chosen else '', tuple(chosen))
