# SPDX-License-Identifier: Apache-2.0
"""The closed vocabulary of the scene graph: which words an object or a relation may carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
import re
from types import MappingProxyType
from typing import cast

import yaml

MAX_WORD_BYTES = 24
MAX_WORDS = 512  # of one kind
MAX_GROUPS = 8  # of attributes; the grammar spells out their combinations
_WORD = re.compile(r'[a-z][a-z0-9_-]*')
_KEYS = ('labels', 'attributes', 'predicates')

_LABELS = (
    'apple',
    'arm',
    'ball',
    'banana',
    'basket',
    'block',
    'board',
    'book',
    'bottle',
    'bowl',
    'box',
    'brush',
    'bucket',
    'button',
    'cabinet',
    'cable',
    'can',
    'carrot',
    'cart',
    'chair',
    'cloth',
    'container',
    'counter',
    'cube',
    'cup',
    'door',
    'drawer',
    'floor',
    'food',
    'fork',
    'gripper',
    'handle',
    'human',
    'knife',
    'lid',
    'marker',
    'mug',
    'oven',
    'pan',
    'pen',
    'plate',
    'pot',
    'robot',
    'shelf',
    'sink',
    'spatula',
    'spoon',
    'sponge',
    'stove',
    'table',
    'tool',
    'towel',
    'toy',
    'tray',
    'wall',
    'window',
)
_ATTRIBUTES = {
    'colour': (
        'red',
        'orange',
        'yellow',
        'green',
        'blue',
        'purple',
        'brown',
        'black',
        'white',
        'grey',
        'silver',
    ),
    'material': ('wooden', 'metal', 'plastic', 'glass', 'paper', 'fabric'),
    'size': ('small', 'large'),
    'openness': ('open', 'closed'),
    'fill': ('empty', 'full'),
}
_PREDICATES = (
    'on',
    'under',
    'in',
    'left_of',
    'right_of',
    'behind',
    'in_front_of',
    'near',
    'holding',
)


def _checked(kind: str, words: object) -> tuple[str, ...]:
    if not isinstance(words, (list, tuple)) or not words:
        raise ValueError(f'{kind}: expected a list of words, got {words!r:.80}')
    if len(words) > MAX_WORDS:
        raise ValueError(f'{kind}: expected at most {MAX_WORDS} words, got {len(words)}')
    for word in words:
        if not isinstance(word, str) or not _WORD.fullmatch(word) or len(word) > MAX_WORD_BYTES:
            raise ValueError(
                f'{kind}: expected words of a-z, 0-9, _ and -, from a letter on and at most '
                f'{MAX_WORD_BYTES} long, got {word!r:.80}'
            )
    if len(set(words)) != len(words):
        double = next(word for word in words if words.count(word) > 1)
        raise ValueError(f'{kind}: expected each word once, got {double!r} twice')
    return tuple(words)


@dataclass(frozen=True, slots=True)
class SceneVocabulary:
    """Labels, attributes in groups (an object has at most one word of each), relation words.

    :raises ValueError: names the list, what was expected and what came.
    """

    labels: tuple[str, ...] = _LABELS
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _ATTRIBUTES)
    predicates: tuple[str, ...] = _PREDICATES

    def __post_init__(self) -> None:
        object.__setattr__(self, 'labels', _checked('labels', self.labels))
        object.__setattr__(self, 'predicates', _checked('predicates', self.predicates))
        if not isinstance(self.attributes, Mapping) or len(self.attributes) > MAX_GROUPS:
            raise ValueError(
                f'attributes: expected at most {MAX_GROUPS} groups of words by name, '
                f'got {self.attributes!r:.80}'
            )
        groups = {
            str(group): _checked(f'attributes.{group}', words)
            for group, words in self.attributes.items()
        }
        object.__setattr__(self, 'attributes', MappingProxyType(groups))
        if groups:
            _checked('attributes', self.attribute_words)

    @property
    def attribute_words(self) -> tuple[str, ...]:
        """All attribute words, group by group."""
        return tuple(word for words in self.attributes.values() for word in words)

    def group_of(self, attribute: str) -> str:
        """Return the group of an attribute word; '' where the word is unknown."""
        return next((group for group, words in self.attributes.items() if attribute in words), '')


def load_vocabulary(path: str | Path) -> SceneVocabulary:
    """Read a vocabulary from a YAML file with the keys labels, attributes, predicates.

    A key that is left out keeps its default.

    :raises ValueError: the file cannot be read or is wrong; names the file and the key.
    """
    try:
        data = yaml.safe_load(Path(path).read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f'{path}: expected a readable YAML file, got: {error}') from error
    if not isinstance(data, dict) or not set(data) <= set(_KEYS):
        raise ValueError(f'{path}: expected only the keys {", ".join(_KEYS)}, got {data!r:.80}')
    try:
        return SceneVocabulary(**cast(dict[str, tuple[str, ...]], data))  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from error
