# SPDX-License-Identifier: Apache-2.0
"""How words and quantities of plain statements are brought to one form."""

from __future__ import annotations

from dataclasses import dataclass
import re

_SPELLINGS = {
    'color': 'colour',
    'gray': 'grey',
    'weight': 'mass',
    'meter': 'metre',
    'aluminum': 'aluminium',
}
_IRREGULAR = {
    'knives': 'knife',
    'shelves': 'shelf',
    'people': 'person',
    'boxes': 'box',
    'dishes': 'dish',
    'glasses': 'glass',
    'brushes': 'brush',
    'loaves': 'loaf',
    'men': 'man',
    'women': 'woman',
    'children': 'child',
    'glass': 'glass',
}
_NUMBERS = {
    word: value
    for value, word in enumerate(
        (
            'zero',
            'one',
            'two',
            'three',
            'four',
            'five',
            'six',
            'seven',
            'eight',
            'nine',
            'ten',
            'eleven',
            'twelve',
        )
    )
}
_ARTICLES = ('the ', 'a ', 'an ', 'my ', 'your ', 'our ', 'this ', 'that ')

# Unit: (what it measures, factor to the SI unit, offset in that unit).
_UNITS = {
    'm': ('length', 1.0, 0.0),
    'metre': ('length', 1.0, 0.0),
    'cm': ('length', 0.01, 0.0),
    'centimetre': ('length', 0.01, 0.0),
    'mm': ('length', 0.001, 0.0),
    'millimetre': ('length', 0.001, 0.0),
    'km': ('length', 1_000.0, 0.0),
    'kg': ('mass', 1.0, 0.0),
    'kilogram': ('mass', 1.0, 0.0),
    'g': ('mass', 0.001, 0.0),
    'gram': ('mass', 0.001, 0.0),
    'rad': ('angle', 1.0, 0.0),
    'radian': ('angle', 1.0, 0.0),
    'deg': ('angle', 0.017453292519943295, 0.0),
    'degree': ('angle', 0.017453292519943295, 0.0),
    '°': ('angle', 0.017453292519943295, 0.0),
    's': ('time', 1.0, 0.0),
    'second': ('time', 1.0, 0.0),
    'ms': ('time', 0.001, 0.0),
    'minute': ('time', 60.0, 0.0),
    'min': ('time', 60.0, 0.0),
    'n': ('force', 1.0, 0.0),
    'newton': ('force', 1.0, 0.0),
    'l': ('volume', 0.001, 0.0),
    'litre': ('volume', 0.001, 0.0),
    'ml': ('volume', 1e-6, 0.0),
    '%': ('share', 0.01, 0.0),
    'percent': ('share', 0.01, 0.0),
    '°c': ('temperature', 1.0, 273.15),
    'celsius': ('temperature', 1.0, 273.15),
    'k': ('temperature', 1.0, 0.0),
    'kelvin': ('temperature', 1.0, 0.0),
    '': ('number', 1.0, 0.0),
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what it measures, in SI units."""

    value: float
    measure: str


def word(text: str) -> str:
    """Return a name in the form of the scene graph: lower case, British, joined by `_`."""
    text = ' '.join(text.casefold().replace('_', ' ').replace('-', ' ').split())
    for article in _ARTICLES:
        text = text.removeprefix(article)
    return '_'.join(_SPELLINGS.get(part, part) for part in text.split())


def singular(name: str) -> str:
    """Return the singular of a name in the form of `word`."""
    *first, last = name.split('_')
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    elif last.endswith('ies') and len(last) > 4:
        last = last[:-3] + 'y'
    elif re.search(r'(?:s|x|z|ch|sh)es$', last):
        last = last[:-2]
    elif last.endswith('s') and not last.endswith(('ss', 'us', 'is')):
        last = last[:-1]
    return '_'.join([*first, last])


def number(text: str) -> float | None:
    """Return the value of a number in digits or one of the words zero to twelve."""
    text = text.casefold()
    if text in _NUMBERS:
        return float(_NUMBERS[text])
    try:
        return float(text) if re.fullmatch(r'[-+]?\d+(\.\d+)?', text) else None
    except ValueError:
        return None


def is_unit(text: str) -> bool:
    """Say whether a text is a unit that `quantity` knows."""
    return _unit(text) in _UNITS


def quantity(value: float, unit: str) -> Quantity | None:
    """Return a number of a unit in SI; None where the unit is unknown."""
    known = _UNITS.get(_unit(unit))
    if known is None:
        return None
    measure, factor, offset = known
    return Quantity(value * factor + offset, measure)


def spread(value: float, unit: str) -> float:
    """Return a difference (a tolerance) of a unit in SI.

    :raises KeyError: the unit is unknown.
    """
    return value * _UNITS[_unit(unit)][1]


def _unit(text: str) -> str:
    text = text.casefold().strip()
    if text in _UNITS:
        return text
    text = text.replace('meter', 'metre').replace('liter', 'litre').replace('degrees c', '°c')
    text = text.replace('degree celsius', '°c')
    return text.removesuffix('s') if len(text) > 2 else text
