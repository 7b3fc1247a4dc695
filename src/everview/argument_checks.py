"""Arguments checked by the annotations of what they are given to.

An annotation defines which values make sense, and an error for others has the names of the
function and the argument, before anything is done.

Annotations of values that are checked where they are used (rows, keys, parameters) are not looked into; neither
are those that name what is not imported. Where something has failed already, the checks look for what may have
been the reason, and are stricter: of Arrow's classes only these, and no text with zeros or half characters.
"""

from __future__ import annotations

import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from everview.errors import InputError

Check: TypeAlias = Callable[[object], bool]


class Checks:
    """The checks of one function, made when they are first needed."""

    def __init__(self, function: Callable[..., Any], strict: bool = False) -> None:
        self._function = function
        self._strict = strict

    @cached_property
    def _parameters(self) -> tuple[list[tuple[str, Check | None]], dict[str, Check | None], Check | None, Any]:
        """Of arguments by place and by name, and of all further ones by place."""
        places: list[tuple[str, Check | None]] = []
        names: dict[str, Check | None] = {}
        rest: Check | None = None
        hints: dict[str, Any] = {}
        for name, parameter in inspect.signature(self._function).parameters.items():
            hints[name] = hint = _evaluated(parameter.annotation, self._function)
            check = check_of(hint, self._strict)
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = check
                hints["*"] = hint
            elif parameter.kind is not parameter.VAR_KEYWORD:
                names[name] = check
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    places.append((name, check))
        return places, names, rest, hints

    def check(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Raise an :class:`InputError` for the first argument that makes no sense. Python itself
        reports a wrong number of them."""
        places, names, rest, hints = self._parameters
        for (name, check), value in zip(places, arguments, strict=False):
            if check is not None and not check(value):
                raise self._refused(name, value, hints[name])
        if rest is not None:
            for value in arguments[len(places) :]:
                if not rest(value):
                    raise self._refused("each argument", value, hints["*"])
        for name, value in named.items():
            named_check = names.get(name)
            if named_check is not None and not named_check(value):
                raise self._refused(name, value, hints[name])

    def _refused(self, name: str, value: object, hint: Any) -> InputError:
        called = self._function.__qualname__.removesuffix(".__init__")
        try:
            shown = repr(value)
        except Exception:
            shown = f"a {type(value).__name__}"
        shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
        return InputError(f"{called}: {name} cannot be {shown}", hint=f"give {described(hint)}")


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """What an annotation means; anything, where it names what is imported for type checkers only."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except Exception:
        return Any


# ------------------------------------------------------------------ checks


def check_of(hint: Any, strict: bool = False) -> Check | None:
    """Whether a value is one that an annotation means; None where every value may be."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        checks = [check_of(part, strict) for part in typing.get_args(hint)]
        known = [check for check in checks if check is not None]
        return (lambda value: any(check(value) for check in known)) if len(known) == len(checks) else None
    if origin is typing.Literal:
        allowed = typing.get_args(hint)
        return lambda value: any(type(value) is type(one) and value == one for one in allowed)
    if origin is Callable:
        return callable
    if origin is not None:
        return _container(origin, typing.get_args(hint), strict)
    if strict and hint is str:
        return _is_storable
    return _KNOWN.get(hint) or _of_class(hint, strict)


def _container(origin: Any, inside: tuple[Any, ...], strict: bool) -> Check | None:
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        keys, values = (check_of(part, strict) or _is_anything for part in inside)
        return lambda value: (
            isinstance(value, Mapping) and all(map(keys, value.keys())) and all(map(values, value.values()))
        )
    if origin in (Sequence, Collection, Iterable) or (origin is tuple and inside[-1:] == (Ellipsis,)):
        first = check_of(inside[0], strict) or _is_anything
        outer: Check = _is_several if origin in (Collection, Iterable) else _is_list
        again = Collection if origin is Collection else Sequence
        return lambda value: outer(value) and (not isinstance(value, again) or all(map(first, value)))
    return None


def _of_class(hint: Any, strict: bool) -> Check | None:
    homes = ("everview.", "pyarrow.") if strict else ("everview.",)
    own = inspect.isclass(hint) and hint.__module__.startswith(homes) and not getattr(hint, "_is_protocol", False)
    return (lambda value: isinstance(value, hint)) if own else None


def _is_anything(value: object) -> bool:
    return True


def _is_several(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_storable(value: object) -> bool:
    """Whether a value is text that files and documents can be named after."""
    try:
        return isinstance(value, str) and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _is_flag(value: object) -> bool:
    return isinstance(value, bool | int) or type(value).__name__ in ("bool", "bool_")


def _is_whole(value: object) -> bool:
    return not isinstance(value, bool) and hasattr(type(value), "__index__") and getattr(value, "ndim", 0) == 0


def _is_number(value: object) -> bool:
    if _is_whole(value):
        return True
    return isinstance(value, float) and not math.isnan(value)


_KNOWN: dict[Any, Check] = {
    None: lambda value: value is None,
    type(None): lambda value: value is None,
    str: lambda value: isinstance(value, str),
    bytes: lambda value: isinstance(value, bytes),
    bool: _is_flag,
    int: _is_whole,
    float: _is_number,
    Path: lambda value: isinstance(value, os.PathLike),
}


# ------------------------------------------------------------------ words


_WORDS: dict[Any, str] = {
    None: "None",
    type(None): "None",
    str: "a text",
    bytes: "bytes",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Path: "a path",
}


def described(hint: Any) -> str:
    """What an annotation means, in words."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(dict.fromkeys(described(part) for part in typing.get_args(hint)))
    if origin is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if origin is Sequence:
        return (
            "a list"
            if typing.get_args(hint) in ((), (object,))
            else f"a list, each of it {described(typing.get_args(hint)[0])}"
        )
    if origin is not None:
        return f"a {getattr(origin, '__name__', origin).lower()}"
    return _WORDS.get(hint) or f"a {getattr(hint, '__name__', hint)}"
