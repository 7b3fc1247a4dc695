"""Frozen definitions as plain values, and back.

The fields of a dataclass are its recorded form, and their annotations define how they are
read back, so a definition that gains a field needs no code here. A definition that is one of several
kinds (:class:`Tagged`) is recorded with the name of its kind.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from functools import cache
from itertools import chain
from typing import Any, ClassVar

from everview.change.types import Type, parse_type

_PLAIN = (str, int, bool, type(None))
_TAG = "kind of definition"


class Tagged:
    """A definition that is one of a union of kinds."""

    name: ClassVar[str]
    """Of the kind, unique in its union."""


def encoded(value: Any) -> Any:
    """Dictionaries, lists, texts, numbers. What a definition holds several times is encoded once."""
    return _encoded(value, {})


def _encoded(value: Any, known: dict[int, Any]) -> Any:
    if type(value) in _PLAIN:
        return value
    found = known.get(id(value))
    if found is None:
        found = known[id(value)] = _fresh(value, known)
    return found


def _fresh(value: Any, known: dict[int, Any]) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Type):
        tag = {_TAG: value.name} if isinstance(value, Tagged) else {}
        return tag | {name: _encoded(getattr(value, name), known) for name in _hints(type(value))}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Type):
        return str(value)
    if isinstance(value, tuple):
        return value if _is_text(value) else [_encoded(item, known) for item in value]
    return value


def _is_text(value: tuple[Any, ...]) -> bool:
    """Whether it holds texts, or tuples of texts: names and constants, of which there may be many thousands."""
    kinds = set(map(type, value))
    return kinds == {str} or (kinds == {tuple} and set(map(type, chain.from_iterable(value))) == {str})


def decoded(hint: Any, value: Any) -> Any:
    """The reverse of :func:`encoded`, for a value annotated so."""
    origin = typing.get_origin(hint)
    if origin is types.UnionType:
        return None if value is None else decoded(_chosen(hint, value), value)
    if origin is tuple:
        item = typing.get_args(hint)[0]
        if item is str:
            return tuple(value)
        if item == tuple[str, ...]:
            return tuple(map(tuple, value))
        return tuple(decoded(item, found) for found in value)
    if hint is Type:
        return _type(value)
    if issubclass(hint, enum.Enum):
        return hint(value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        known = _hints(hint)
        return hint(**{name: decoded(known[name], found) for name, found in value.items() if name in known})
    return value


def _chosen(union: Any, value: Any) -> Any:
    """The member of a union that a value other than None was recorded for."""
    members = [member for member in typing.get_args(union) if member is not type(None)]
    return members[0] if len(members) == 1 else next(one for one in members if one.name == value[_TAG])


@cache
def _hints(definition: type) -> dict[str, Any]:
    hints = typing.get_type_hints(definition)
    return {field.name: hints[field.name] for field in dataclasses.fields(definition)}


@cache
def _type(text: str) -> Type:
    return parse_type(text)
