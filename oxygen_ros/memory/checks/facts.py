# SPDX-License-Identifier: Apache-2.0
"""Facts that the operator vouches for, read from a YAML file.

facts:
  - {entity: table, attribute: height, value: 0.75, unit: m, tolerance: 0.02, source: survey}
  - {entity: cup, attribute: colour, value: red, source: inventory}
  - {entity: cup, attribute: on, value: table, source: layout}       # a relation
  - {entity: cup, attribute: count, value: 3, source: inventory}     # how many there are
  - {entity: door, attribute: openness, value: [open, closed], source: any is fine}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import math
from pathlib import Path
import re

import yaml

from ..episodes.words import is_unit, singular, word
from ..limits import bounded_name

_KEYS = {'entity', 'attribute', 'value', 'unit', 'tolerance', 'source'}
MAX_FACTS = 10_000


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of an entity.

    :raises ValueError: names the field, what was expected and what came.
    """

    entity: str
    attribute: str
    value: float | tuple[str, ...]  # a number, or words of which any is right
    source: str  # cited with every verdict
    unit: str = ''
    tolerance: float = 0.0  # in the unit

    def __post_init__(self) -> None:
        for name in ('entity', 'attribute', 'source'):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise ValueError(f'{name}: expected a text, got {getattr(self, name)!r:.80}')
        if not isinstance(self.unit, str) or not is_unit(self.unit):
            raise ValueError(f'unit: expected one that is known, got {self.unit!r:.80}')
        if not isinstance(self.tolerance, (int, float)) or not 0.0 <= self.tolerance < math.inf:
            raise ValueError(f'tolerance: expected 0 or above, got {self.tolerance!r:.80}')
        object.__setattr__(self, 'entity', singular(word(self.entity)))
        object.__setattr__(self, 'attribute', word(self.attribute))
        object.__setattr__(self, 'source', bounded_name(self.source))


class _Loader(yaml.SafeLoader):
    """Reads `on`, `off`, `yes` and `no` as the words they are, as YAML does since 1.2."""


_BOOL = 'tag:yaml.org,2002:bool'
_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile('^(?:true|false)$'), ['t', 'f'])


class Facts:
    """All facts, by entity and attribute."""

    def __init__(self, facts: tuple[Fact, ...]) -> None:
        self.facts = facts
        self.entities = frozenset(fact.entity for fact in facts) | frozenset(
            value for fact in facts if isinstance(fact.value, tuple) for value in fact.value
        )
        self._found: dict[tuple[str, str], list[Fact]] = {}
        self._attribute_of: dict[str, str] = {}
        for fact in facts:
            self._found.setdefault((fact.entity, fact.attribute), []).append(fact)
            if isinstance(fact.value, tuple):
                for value in fact.value:
                    self._attribute_of.setdefault(value, fact.attribute)

    def about(self, entity: str, attribute: str) -> list[Fact]:
        """Return what is known of an attribute of an entity."""
        return self._found.get((entity, attribute), [])

    def attribute_of(self, value: str) -> str:
        """Return an attribute that has this word as a value in some fact; '' where none has."""
        return self._attribute_of.get(value, '')


def _fact(fields: object) -> Fact:
    if not isinstance(fields, Mapping) or not set(fields) <= _KEYS:
        raise ValueError(f'expected only the keys {", ".join(sorted(_KEYS))}, got {fields!r:.80}')
    missing = {'entity', 'attribute', 'value', 'source'} - set(fields)
    if missing:
        raise ValueError(f'expected the key {min(missing)}, got {fields!r:.80}')
    given = fields['value']
    values = given if isinstance(given, list) else [given]
    value: float | tuple[str, ...]
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        value = float(given)
        if not math.isfinite(value):
            raise ValueError(f'value: expected a finite number, got {given}')
    elif values and all(isinstance(one, (str, bool)) for one in values):
        value = tuple(singular(word(str(one))) for one in values)
    else:
        raise ValueError(f'value: expected a number, a word or words, got {given!r:.80}')
    return Fact(
        fields['entity'],
        fields['attribute'],
        value,
        fields['source'],
        fields.get('unit', ''),
        fields.get('tolerance', 0.0),
    )


def load_facts(path: str | Path) -> Facts:
    """Read a facts file.

    :raises ValueError: the file cannot be read or is wrong; names the file, the fact and the key.
    """
    try:
        data = yaml.load(Path(path).read_text(encoding='utf-8'), Loader=_Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f'{path}: expected a readable YAML file, got: {error}') from error
    if not isinstance(data, dict) or set(data) != {'facts'} or not isinstance(data['facts'], list):
        raise ValueError(f'{path}: expected the one key facts with a list, got {data!r:.80}')
    if len(data['facts']) > MAX_FACTS:
        raise ValueError(f'{path}: expected at most {MAX_FACTS} facts, got {len(data["facts"])}')
    facts: list[Fact] = []
    for index, fields in enumerate(data['facts'], 1):
        try:
            facts.append(_fact(fields))
        except ValueError as error:
            raise ValueError(f'{path}: fact {index}: {error}') from error
    return Facts(tuple(facts))
