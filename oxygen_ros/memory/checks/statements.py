# SPDX-License-Identifier: Apache-2.0
"""Reading plain statements: which claims a sentence makes, or that it cannot be read.

A sentence is read only as a whole. What does not fit one of the forms below makes no claim that
could be checked, and so stays unverified:

- the (red) cup is (not) red / on the table / 12 cm high; the cups are red
- the height of the table is (about) 75 cm; the table's colour is brown
- the table has a height of 0.75 m; the box weighs 2 kg
- there is a (red) cup (on the table); there are (no, three) cups; I see a red cup
- both of two such sentences, joined by `and`
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
import re

from ..episodes.words import is_unit, number, singular, word
from ..limits import bounded

MAX_SENTENCES = 64


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that is said of an entity."""

    entity: str
    attribute: str  # '': to be found out from the value
    value: float | str
    unit: str = ''
    is_negated: bool = False
    is_about: bool = False  # the number was said to be rough
    at_least: bool = False  # a count of at least this


PREDICATES = {
    'on': 'on',
    'on top of': 'on',
    'in': 'in',
    'inside': 'in',
    'under': 'under',
    'below': 'under',
    'underneath': 'under',
    'left of': 'left_of',
    'to the left of': 'left_of',
    'right of': 'right_of',
    'to the right of': 'right_of',
    'behind': 'behind',
    'in front of': 'in_front_of',
    'near': 'near',
    'next to': 'near',
    'beside': 'near',
    'close to': 'near',
    'holding': 'holding',
}
_MEASURES = {
    'high': 'height',
    'tall': 'height',
    'wide': 'width',
    'long': 'length',
    'deep': 'depth',
    'heavy': 'mass',
    'thick': 'thickness',
    'hot': 'temperature',
    'warm': 'temperature',
}

_NAME = r'[a-z][a-z0-9_-]*(?: [a-z][a-z0-9_-]*){0,2}?'
_THE = r'(?:the|a|an|my|your|our|this|that) '
_ENTITY = f'{_THE}(?P<entity>{_NAME})'
_IS = r"(?: is| are|'s)(?P<negated> not|n't)?"
_NUMBER = (
    r'(?P<about>about |around |roughly |approximately |nearly |exactly )?'
    r'(?P<number>[-+]?\d+(?:\.\d+)?)'
)
_UNIT = r' ?(?P<unit>°c|°|%|[a-z]+)'
_PREDICATE = '(?P<predicate>' + '|'.join(sorted(PREDICATES, key=len, reverse=True)) + ')'
_WHERE = rf'(?: {_PREDICATE} {_THE}(?P<other>{_NAME}))?'
_THERE = rf'(?P<many>[a-z]+|\d{{1,6}}) (?P<entity>{_NAME}){_WHERE}'
_PREFIX = re.compile(
    r'^(?:(?:yes|no|well|ok|okay)[,:] )?'
    r'(?:(?:right now|now|currently|i think|i believe|it seems),? (?:that )?)?'
)
_SEE = re.compile(r'^i (?:can )?see (?:that )?')
_JOINT = re.compile(r',? and (?=(?:the|there) )')
_END = re.compile(r'\.(?!\d)|[!;\n]+')

_Split = Callable[[str], tuple[str, list[Claim]]]
_Reader = Callable[[re.Match[str], _Split], list[Claim]]


def _number_claim(match: re.Match[str], split: _Split, attribute: str) -> list[Claim]:
    unit = match['unit'] or ''
    if not is_unit(unit):
        return []
    entity, claims = split(match['entity'])
    return [
        *claims,
        Claim(
            entity,
            word(attribute),
            float(match['number']),
            unit,
            bool(match.groupdict().get('negated')),
            (match['about'] or 'exactly ') != 'exactly ',
        ),
    ]


def _read_measure(match: re.Match[str], split: _Split) -> list[Claim]:
    measure = _MEASURES.get(match['adjective'])
    return _number_claim(match, split, measure) if measure else []


def _read_number(match: re.Match[str], split: _Split) -> list[Claim]:
    return _number_claim(match, split, match.groupdict().get('attribute') or 'mass')


def _read_named_word(match: re.Match[str], split: _Split) -> list[Claim]:
    entity, claims = split(match['entity'])
    return [
        *claims,
        Claim(
            entity,
            word(match['attribute']),
            singular(word(match['value'])),
            is_negated=bool(match['negated']),
        ),
    ]


def _read_relation(match: re.Match[str], split: _Split) -> list[Claim]:
    entity, claims = split(match['entity'])
    other, more = split(match['other'])
    return [
        *claims,
        *more,
        Claim(entity, PREDICATES[match['predicate']], other, is_negated=bool(match['negated'])),
    ]


def _read_word(match: re.Match[str], split: _Split) -> list[Claim]:
    entity, claims = split(match['entity'])
    return [*claims, Claim(entity, '', word(match['value']), is_negated=bool(match['negated']))]


def _read_there(match: re.Match[str], split: _Split) -> list[Claim]:
    many = match['many']
    count = {'no': 0.0, 'a': 1.0, 'an': 1.0, 'the': 1.0, 'some': 1.0}.get(many, number(many))
    if count is None:
        return []
    entity, claims = split(match['entity'])
    if match['predicate']:
        other, more = split(match['other'])
        claims += [*more, Claim(entity, PREDICATES[match['predicate']], other)]
    at_least = many in ('a', 'an', 'the', 'some')
    if claims and not at_least:
        return []  # a count of some of them: no fact speaks of that
    # What is of a colour or at a place is there; that it is there needs no claim of its own.
    return claims or [Claim(entity, 'count', count, at_least=at_least)]


_BARE = re.compile(_THERE)  # without a verb: only after `I see`
_FORMS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(f'{_ENTITY}{_IS} {_NUMBER}{_UNIT} (?P<adjective>[a-z]+)'), _read_measure),
    (
        re.compile(f'the (?P<attribute>{_NAME}) of {_ENTITY}{_IS} {_NUMBER}(?:{_UNIT})?'),
        _read_number,
    ),
    (re.compile(f"{_ENTITY}'s (?P<attribute>{_NAME}){_IS} {_NUMBER}(?:{_UNIT})?"), _read_number),
    (
        re.compile(
            f'{_ENTITY} ha(?:s|ve) (?:an? )?(?P<attribute>{_NAME}) of {_NUMBER}(?:{_UNIT})?'
        ),
        _read_number,
    ),
    (re.compile(f'{_ENTITY} weighs? {_NUMBER}{_UNIT}'), _read_number),
    (
        re.compile(f'the (?P<attribute>{_NAME}) of {_ENTITY}{_IS} (?P<value>{_NAME})'),
        _read_named_word,
    ),
    (re.compile(f"{_ENTITY}'s (?P<attribute>{_NAME}){_IS} (?P<value>{_NAME})"), _read_named_word),
    (re.compile(f'{_ENTITY}{_IS} {_PREDICATE} {_THE}(?P<other>{_NAME})'), _read_relation),
    (re.compile(f"there(?: is| are|'s) {_THERE}"), _read_there),
    (_BARE, _read_there),
    (re.compile(f'{_ENTITY}{_IS} (?P<value>[a-z][a-z0-9_-]*)'), _read_word),
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that state something: questions are left out."""
    found: list[str] = []
    for part in re.split(r'(?<=\?)', bounded(text)):
        pieces = [' '.join(piece.split()) for piece in _END.split(part)]
        found += [piece for piece in pieces if piece and not piece.endswith('?')]
    return found[:MAX_SENTENCES]


def read_sentence(sentence: str, entities: Collection[str] = ()) -> list[Claim]:
    """Return the claims of one sentence; none where it cannot be read as a whole.

    :param entities: names that may be of several words; else the words before the last describe.
    """

    def split(name: str) -> tuple[str, list[Claim]]:
        parts = word(name).split('_')
        start = next(
            (
                index
                for index in range(len(parts))
                if singular('_'.join(parts[index:])) in entities
            ),
            len(parts) - 1,
        )
        entity = singular('_'.join(parts[start:]))
        return entity, [Claim(entity, '', part) for part in parts[:start]]

    plain = sentence.casefold().replace('\u2019', "'").strip(' "')
    plain = _PREFIX.sub('', plain)
    rest = _SEE.sub('', plain)
    claims: list[Claim] = []
    for part in _JOINT.split(rest):
        read = _read_part(part, split, is_seen=rest != plain)
        if not read:
            return []  # half of a sentence is not the sentence
        claims += read
    return claims


def _read_part(part: str, split: _Split, is_seen: bool) -> list[Claim]:
    for form, reader in _FORMS:
        match = form.fullmatch(part) if form is not _BARE or is_seen else None
        claims = reader(match, split) if match else []
        if claims:
            return claims
    return []
