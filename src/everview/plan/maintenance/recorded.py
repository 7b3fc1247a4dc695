"""Frozen definitions as plain values, and back.

The fields of a dataclass are its recorded form, and their annotations say how to
read them back, so a definition that gains a field needs no code here.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

from everview.change.types import Type, parse_type

_PLAIN = (str, int, bool, type(None))


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
        return {name: _encoded(getattr(value, name), known) for name in _hints(type(value))}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Type):
        return str(value)
    if isinstance(value, tuple):
        return [_encoded(item, known) for item in value]
    if isinstance(value, Mapping):
        return {name: _encoded(item, known) for name, item in value.items()}
    return value


def decoded(hint: Any, value: Any) -> Any:
    """The reverse of :func:`encoded`, for a value annotated so."""
    if hint is Any:
        return _frozen(value)
    origin = typing.get_origin(hint)
    if origin is types.UnionType:
        if value is None:
            return None
        (hint,) = (found for found in typing.get_args(hint) if found is not type(None))
        return decoded(hint, value)
    if origin is tuple:
        item = typing.get_args(hint)[0]
        return tuple(decoded(item, found) for found in value)
    if origin is not None:  # a Mapping of anything
        return {name: _frozen(found) for name, found in value.items()}
    if hint is Type:
        return _type(value)
    if issubclass(hint, enum.Enum):
        return hint(value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        known = _hints(hint)
        return hint(**{name: decoded(known[name], found) for name, found in value.items() if name in known})
    return value


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, Mapping):
        return {name: _frozen(item) for name, item in value.items()}
    return value


@cache
def _hints(definition: type) -> dict[str, Any]:
    hints = typing.get_type_hints(definition)
    return {field.name: hints[field.name] for field in dataclasses.fields(definition)}


@cache
def _type(text: str) -> Type:
    return parse_type(text)
