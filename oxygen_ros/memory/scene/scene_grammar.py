# SPDX-License-Identifier: Apache-2.0
"""The bounded grammar of the scene-graph head.

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

from .token_constraint import ConstrainedVocabulary, Grammar, TokenConstraint
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

    :raises ValueError: names the field, what was expected and what came.
    """

    cameras: tuple[str, ...]  # names, in the model's order
    max_objects: int = 8
    max_relations: int = 8
    max_attributes: int = 2  # of one object
    vocabulary: SceneVocabulary = field(default_factory=SceneVocabulary)

    def __post_init__(self) -> None:
        for name, low, high in (
            ('max_objects', 1, MAX_OBJECTS),
            ('max_relations', 0, MAX_RELATIONS),
            ('max_attributes', 0, 8),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f'{name}: expected {low} to {high}, got {value}')
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


class SceneGrammar:
    """The scene format compiled for a model's tokens: one constraint for each request.

    Compile once, at configure; `constraint` may be called from any one thread at a time.

    :param token_limit: the most tokens that a request may decode.
    :raises ValueError: the longest text does not fit the token limit.
    """

    def __init__(
        self, scene_format: SceneFormat, vocabulary: ConstrainedVocabulary, token_limit: int
    ) -> None:
        if scene_format.max_tokens > token_limit:
            raise ValueError(
                f'token_limit: expected at least {scene_format.max_tokens}, the longest scene '
                f'graph of {scene_format.max_objects} objects and {scene_format.max_relations} '
                f'relations, got {token_limit}'
            )
        self.format = scene_format
        self.max_tokens = scene_format.max_tokens
        self._grammar = Grammar(scene_format.lark(), vocabulary)

    def constraint(self) -> TokenConstraint:
        """Return a constraint at the start of a scene graph."""
        return self._grammar.constraint()
