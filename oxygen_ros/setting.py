# SPDX-License-Identifier: Apache-2.0
"""Settings: fields of frozen dataclasses that are parameters, each declared once, on its field.

A dataclass of settings says in `PREFIX` how the names of its parameters begin:

    @dataclass(frozen=True, slots=True)
    class KVConfig:
        PREFIX: ClassVar[str] = 'kv'
        block_size: int = setting(8, 'Size of a KV block', 'tokens', low=1, high=1024)

        def __post_init__(self) -> None:
            check(self)

From that come the parameter `kv.block_size` with its type, the files that list it, its check and
its value: `make(KVConfig, {'kv.block_size': 16})`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from .errors import OxygenError

Value: TypeAlias = bool | int | float | str | list[str] | list[float] | list[int]

_SETTING, _PART, _SHARED = 'setting', 'part', 'shared'  # keys of a field's metadata
_TYPE_NAMES: dict[type, str] = {bool: 'bool', int: 'integer', float: 'double', str: 'string'}
_T = TypeVar('_T')
_known: dict[type[Any], Mapping[str, Setting]] = {}


class SettingError(OxygenError, ValueError):
    """A parameter cannot be used; the message names it, what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A parameter: name, type (that of its default), unit, range and meaning.

    :raises ValueError: the default is out of range or no choice (a mistake of the declaration).
    """

    name: str
    default: Value
    text: str  # what it means
    unit: str = ''
    low: float | None = None  # bounds of a number, or of each number of a list
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = False  # may be changed while the node is configured
    fixed: bool = False  # stays as it was when the node was made
    # The item of a list that stands for none, since ROS has no empty lists of a known type. Items
    # of a list of names differ, and where the default has any, there is at least one.
    none: str | int | None = None
    enum: type[Enum] | None = None  # of the field

    def __post_init__(self) -> None:
        problem = self.problem(self.default)
        if problem:
            raise ValueError(f'a setting is declared wrongly: {problem}')

    @property
    def type_name(self) -> str:
        """The type in the words of the ROS tools."""
        value = self.default
        if isinstance(value, list):
            return f'{_TYPE_NAMES[type(value[0])]}[]'
        return _TYPE_NAMES[type(value)]

    @property
    def range_text(self) -> str:
        """The range or the choices as text; empty: any value."""
        if self.choices:
            return ', '.join(self.choices)
        if self.low is None and self.high is None:
            return ''
        if self.high is None:
            return f'at least {self.low:g}'
        if self.low is None:
            return f'at most {self.high:g}'
        return f'{self.low:g} to {self.high:g}'

    def checked(self, value: object) -> Value:
        """Return a value in the parameter's own type.

        A whole number is taken where a real one is asked for: `rate:=2` is no mistake.

        :raises SettingError: the value is of another type or out of range.
        """
        default: Any = self.default
        if not isinstance(default, list):
            taken: Any = self._scalar(default, value)
        elif value is None or (isinstance(value, list | tuple) and not value):
            hint = '' if self.none is None else f' ([{self.none!r}] stands for none)'
            raise SettingError(
                f'{self.name}: expected a {self.type_name}, got an empty list{hint}'
            )
        elif isinstance(value, list | tuple):
            taken = [self._scalar(default[0], item) for item in value]
        else:
            raise SettingError(f'{self.name}: expected a {self.type_name}, got {value!r}')
        problem = self.problem(taken)
        if problem:
            raise SettingError(problem)
        return taken  # type: ignore[no-any-return]

    def _scalar(self, default: object, value: object) -> object:
        if type(default) is float and type(value) is int:
            return float(value)
        if type(value) is not type(default):
            raise SettingError(f'{self.name}: expected a {self.type_name}, got {value!r}')
        return value

    def problem(self, value: Value) -> str:
        """Return why a value of the right type is refused; empty: it is not."""
        items: list[Any] = value if isinstance(value, list) else [value]
        for item in items:
            if self.choices and item not in self.choices:
                return f'{self.name}: expected one of {", ".join(self.choices)}, got {item!r}'
            if isinstance(item, int | float) and not self._in_range(item):
                return f'{self.name}: expected {self.range_text}, got {item:g}'
        return self._problem_of_names(items) if self.none == '' else ''

    def _in_range(self, number: float) -> bool:
        # Written so that NaN, which compares as neither, is refused.
        low_ok = self.low is None or number >= self.low
        return low_ok and (self.high is None or number <= self.high)

    def _problem_of_names(self, items: list[Any]) -> str:
        names = [item for item in items if item]
        if not names and self.default != ['']:
            return f'{self.name}: expected at least one name, got none'
        if len(set(names)) != len(names):
            return f'{self.name}: expected different names, got {names}'
        return ''

    def to_field(self, value: Value) -> Any:
        """Return what the field holds for a value of the parameter."""
        if isinstance(value, list):
            items: list[Any] = value
            return tuple(item for item in items if self.none is None or item != self.none)
        return value if self.enum is None else self.enum(value)

    def of_field(self, held: object) -> Value:
        """Return the value of the parameter for what the field holds."""
        value: Value = _value(held, self.none)
        return value


def _value(held: Any, none: Any) -> Any:
    if isinstance(held, tuple):
        return list(held) or [none]
    return held.value if isinstance(held, Enum) else held


def setting(
    default: object,
    text: str,
    unit: str = '',
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    live: bool = False,
    fixed: bool = False,
    none: str | int | None = None,
    name: str = '',
) -> Any:
    """Declare a field as a parameter.

    :param default: of the field; a tuple for a list, an Enum's member for one of its values.
    :param text: what it means, for people.
    :param none: the item of a list that stands for none: '' among names.
    :param name: of the parameter; empty: the dataclass's `PREFIX`, a dot and the field's name.
    """
    enum = type(default) if isinstance(default, Enum) else None
    if enum is not None and not choices:
        choices = tuple(str(member.value) for member in enum)

    def made(full_name: str) -> Setting:
        value = _value(default, none)
        return Setting(
            name or full_name, value, text, unit, low, high, choices, live, fixed, none, enum
        )

    return field(default=default, metadata={_SETTING: made})


def shared(cls: type[Any], field_name: str) -> Any:
    """Declare a field as the one of another dataclass: the same parameter, used in two places."""
    found = settings_of(cls)[field_name]
    default = found.to_field(found.default)
    return field(default=default, metadata={_SETTING: lambda name: found, _SHARED: True})


def part(cls: type[Any]) -> Any:
    """Declare a field that is itself a dataclass of settings."""
    return field(default_factory=cls, metadata={_PART: cls})


def settings_of(cls: type[Any]) -> Mapping[str, Setting]:
    """Return the parameters of a dataclass's own fields, by the names of the fields."""
    if cls not in _known:
        prefix = getattr(cls, 'PREFIX', '')
        _known[cls] = {
            entry.name: entry.metadata[_SETTING](
                f'{prefix}.{entry.name}' if prefix else entry.name
            )
            for entry in fields(cls)
            if _SETTING in entry.metadata
        }
    return _known[cls]


def all_settings(cls: type[Any]) -> dict[str, Setting]:
    """Return the parameters of a dataclass and its parts by name: those of no group, then groups.

    :raises ValueError: two fields declare one parameter, or one is shared that none declares.
    """
    declared: dict[str, Setting] = {}
    borrowed: list[str] = []
    for owner in _classes(cls):
        own = settings_of(owner)
        for entry in fields(owner):
            if _SHARED in entry.metadata:
                borrowed.append(own[entry.name].name)
            elif entry.name in own:
                found = own[entry.name]
                if found.name in declared:
                    raise ValueError(f'{found.name}: expected one field of it, got two')
                declared[found.name] = found
    for name in borrowed:
        if name not in declared:
            raise ValueError(f'{name}: expected a field that declares it, got none')
    groups = list(dict.fromkeys(_group(name) for name in declared))
    groups.sort(key=bool)  # stable: those without a group first
    return {
        name: found
        for group in groups
        for name, found in declared.items()
        if _group(name) == group
    }


def _group(name: str) -> str:
    return name.rpartition('.')[0]


def _classes(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for entry in fields(cls):
        if _PART in entry.metadata:
            yield from _classes(entry.metadata[_PART])


def values_of(settings: Any) -> dict[str, Value]:
    """Return the values of all parameters that a dataclass of settings and its parts hold."""
    own = settings_of(type(settings))
    found: dict[str, Value] = {}
    for entry in fields(settings):
        held = getattr(settings, entry.name)
        if entry.name in own:
            found[own[entry.name].name] = own[entry.name].of_field(held)
        elif _PART in entry.metadata:
            found.update(values_of(held))
    return found


def check(settings: Any) -> None:
    """Check the ranges of a dataclass's own fields, whoever makes it; of its `__post_init__`.

    :raises SettingError: a value is out of its range or no choice.
    """
    for name, found in settings_of(type(settings)).items():
        problem = found.problem(found.of_field(getattr(settings, name)))
        if problem:
            raise SettingError(problem)


def refusal(settings: Any, field_name: str, expected: str, got: object = None) -> SettingError:
    """Return the error of a field that does not go with others.

    :param got: None: what the field holds.
    """
    found = settings_of(type(settings))[field_name]
    if got is None:
        got = found.of_field(getattr(settings, field_name))
    return SettingError(f'{found.name}: expected {expected}, got {got}')


def parameter(cls: type[Any], field_name: str) -> str:
    """Return the name of a field's parameter."""
    return settings_of(cls)[field_name].name


def read(cls: type[_T], field_name: str, values: Mapping[str, object]) -> Any:
    """Return what one field would hold; what is not given is the default.

    :raises SettingError: the value cannot be used.
    """
    found = settings_of(cls)[field_name]
    return found.to_field(found.checked(values.get(found.name, found.default)))


def make(cls: type[_T], values: Mapping[str, object], **given: object) -> _T:
    """Make a dataclass and its parts of parameters; what is not given has its default.

    :param values: by the parameters' names; those of other dataclasses are left alone.
    :param given: fields that are no parameters, or are made already.
    :raises SettingError: a value cannot be used.
    """
    made = dict(given)
    own = settings_of(cls)
    for entry in fields(cls):  # type: ignore[arg-type]
        if entry.name in made:
            continue
        if entry.name in own:
            made[entry.name] = read(cls, entry.name, values)
        elif _PART in entry.metadata:
            made[entry.name] = make(entry.metadata[_PART], values)
    return cls(**made)
