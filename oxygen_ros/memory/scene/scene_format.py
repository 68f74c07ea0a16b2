# SPDX-License-Identifier: Apache-2.0
"""The bounded format in which the scene-graph head writes.

A scene graph is written in lines, objects first, then relations, then a full stop:

    cup red small 0 8bck        label, attributes, camera number, box
    table wooden 0 0vgv
    0 on 1                      subject, predicate, object, counting objects from 0
    .

A box is four digits of base 32 (0-9, a-v): first and last column, first and last row of a grid of
32 x 32 cells over the image, so it takes four tokens of a byte-level tokenizer. The grammar admits
only what can be parsed: words of the vocabulary, at most one attribute of each group and these in
the order of the groups, boxes that are the right way round, relations between two different
objects that were written before. It bounds its own length, and so the text
of any model, however it is trained, ends as a valid graph within `max_tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

from ...setting import check, setting
from .vocabulary import SceneVocabulary

GRID_CELLS = 32
GRID_DIGITS = '0123456789abcdefghijklmnopqrstuv'
MAX_OBJECTS = 64
MAX_RELATIONS = 64
MAX_CAMERAS = 10
END = '.'


def _alternatives(patterns: tuple[str, ...]) -> str:
    # A word is of [a-z0-9_-], none of which means anything in a pattern outside brackets.
    return '(' + '|'.join(patterns) + ')'


@dataclass(frozen=True, slots=True)
class SceneFormat:
    """What may be written: how much, in which words, of which cameras.

    :raises ValueError: names the field or parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'memory'

    cameras: tuple[str, ...]  # names, in the model's order
    max_objects: int = setting(
        6, 'Most objects in one update', low=1, high=MAX_OBJECTS, name='memory.max_new_objects'
    )
    max_relations: int = setting(
        4,
        'Most relations in one update',
        low=0,
        high=MAX_RELATIONS,
        name='memory.max_new_relations',
    )
    max_attributes: int = setting(2, 'Most attributes of one object', low=0, high=8)
    vocabulary: SceneVocabulary = field(default_factory=SceneVocabulary)

    def __post_init__(self) -> None:
        check(self)
        if not 1 <= len(self.cameras) <= MAX_CAMERAS or len(set(self.cameras)) < len(self.cameras):
            raise ValueError(
                f'cameras: expected 1 to {MAX_CAMERAS} distinct names, got {self.cameras}'
            )

    @property
    def max_tokens(self) -> int:
        """Length of the longest text (bytes), and so at most its number of tokens."""
        words = self.vocabulary
        widths = sorted(max(map(len, group)) for group in words.attributes.values())
        attributes = sum(len(' ') + width for width in widths[::-1][: self.max_attributes])
        line = max(map(len, words.labels)) + attributes + len(' 0 0000\n')
        ids = len(str(self.max_objects - 1)) + len(str(max(self.max_objects - 2, 0)))
        relation = ids + max(map(len, words.predicates)) + len('  \n')
        num_relations = self.max_relations if self.max_objects > 1 else 0
        return self.max_objects * line + num_relations * relation + len(END)

    def lark(self) -> str:
        """Return the grammar in the Lark dialect of llguidance."""
        words = self.vocabulary
        span = (
            '('
            + '|'.join(f'{first}[{GRID_DIGITS[cell:]}]' for cell, first in enumerate(GRID_DIGITS))
            + ')'
        )
        groups = [f' {_alternatives(group)}' for group in words.attributes.values()]
        attributes = _alternatives(
            tuple(
                ''.join(chosen)
                for num in range(min(self.max_attributes, len(groups)) + 1)
                for chosen in combinations(groups, num)
            )
        )
        cameras = _alternatives(tuple(str(camera) for camera in range(len(self.cameras))))
        rules = [
            f'OBJECT: /{_alternatives(words.labels)}{attributes} {cameras} {span}{span}\\n/',
            'start: after_0',
        ]
        for num in range(self.max_objects + 1):
            # One rule for each number of objects, so that a relation names only those there are.
            end = f'"{END}"'
            if num > 1 and self.max_relations:
                end = f'RELATION_{num}{{0,{self.max_relations}}} "{END}"'
                rules.append(f'RELATION_{num}: /{self._relation(num)}/')
            more = f' | OBJECT after_{num + 1}' if num < self.max_objects else ''
            rules.append(f'after_{num}: {end}{more}')
        return '\n'.join(rules) + '\n'

    def _relation(self, num_objects: int) -> str:
        predicates = _alternatives(self.vocabulary.predicates)
        triples = (
            f'{subject} {predicates} '
            + _alternatives(tuple(str(other) for other in range(num_objects) if other != subject))
            for subject in range(num_objects)
        )
        return '(' + '|'.join(triples) + r')\n'
