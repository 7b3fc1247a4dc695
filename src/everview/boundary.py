"""The boundary between Everview and its callers.

A :func:`public` function checks its arguments by their annotations before it does anything, and raises
only errors of :mod:`everview.errors`, each with the original error as its cause.

====================================  =======================================================
raised inside                         raised to the caller
====================================  =======================================================
an error of ours                      the same
an error of the caller's own code     the same: of an iterator of rows, say, or of a ``with`` block
a wrong number of arguments           Python's TypeError
a value that the annotation excludes  InputError, before anything is done
OSError, lmdb.Error                   StoreError, StoreFullError if there is no space
pyarrow.ArrowException                InputError: only arguments can cause it
RecursionError                        InputError
DuckDB's "Query interrupted"          KeyboardInterrupt, its cause
MemoryError                           the same
anything else                         InternalError: a mistake in Everview
====================================  =======================================================

A method that is called for every row is :func:`public` too, but :func:`fast`: its arguments are checked
by their use, and by annotations only after a failure. So are the layers below the client that users
can reach (``db.store``, ``db.catalog``, ``db.topology``); functions that run inside a transaction of LMDB's, which has
to see LMDB's own errors, are :func:`internal`.
"""

from __future__ import annotations

import errno
import functools
import inspect
import sys
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any, TypeVar, cast

from everview.argument_checks import Checks
from everview.errors import EverviewError, InputError, InternalError, StoreError, StoreFullError

T = TypeVar("T")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SPECIAL = frozenset(
    {"__init__", "__enter__", "__exit__", "__iter__", "__next__", "__len__", "__getitem__", "__contains__"}
    | {"__arrow_c_stream__", "__repr__", "__str__", "_repr_html_"}
)
"""Methods that Python calls for a user."""
_FAST = "_everview_fast"
_INTERNAL = "_everview_internal"
_OURS = frozenset({"everview", "_duckdb", "duckdb", "lmdb", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "sqlglot"})
"""Packages whose errors are translated, besides Python's own."""


def public(thing: T) -> T:
    """Put the boundary around a function, or around every method and property of a class that users can call."""
    if not inspect.isclass(thing):
        return cast(T, _guarded(cast(Callable[..., Any], thing)))
    for name, member in list(vars(thing).items()):
        if (name in _SPECIAL or not name.startswith("_")) and not hasattr(member, _INTERNAL):
            around = _around(member, _FAST in vars(thing))
            if around is not member:
                setattr(thing, name, around)
                if isinstance(around, functools.cached_property):
                    around.__set_name__(thing, name)
    return thing


def public_constructors(kind: type[T]) -> type[T]:
    """Put the boundary around the constructor and the functions of a value class. Values are created often, so these
    are :func:`fast`."""
    for name, member in list(vars(kind).items()):
        if name == "__init__" or (isinstance(member, staticmethod | classmethod) and not name.startswith("_")):
            setattr(kind, name, _around(member, is_fast=True))
    return kind


def fast(method: T) -> T:
    """A method, or a class with methods, that is called too often to check its annotations each time."""
    setattr(method, _FAST, True)
    return method


def internal(method: T) -> T:
    """A method of a public class that is not for users, and whose errors pass unchanged."""
    setattr(method, _INTERNAL, True)
    return method


def _around(member: object, is_fast: bool = False) -> object:
    guarded = functools.partial(_guarded, is_fast=is_fast)
    if isinstance(member, staticmethod | classmethod):
        return type(member)(guarded(member.__func__))
    if isinstance(member, property):
        return property(member.fget and guarded(member.fget), member.fset and guarded(member.fset))
    if isinstance(member, functools.cached_property):
        return functools.cached_property(guarded(member.func))
    return guarded(member) if inspect.isfunction(member) else member


def _guarded(function: Callable[..., Any], is_fast: bool = False) -> Callable[..., Any]:
    checked = not is_fast and not hasattr(function, _FAST)
    checks = Checks(function, strict=not checked)
    generates = inspect.isgeneratorfunction(function)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            if checked:
                checks.check(arguments, named)
            found = function(*arguments, **named)
        except Exception as error:
            instead = _instead_of(error, function, checks, arguments, named)
            if instead is None:
                raise
            raise instead from error
        return generate(found, arguments, named) if generates else found

    def generate(found: Generator[Any, Any, Any], arguments: Any, named: dict[str, Any]) -> Generator[Any, Any, Any]:
        try:
            return (yield from found)
        except Exception as error:
            instead = _instead_of(error, function, checks, arguments, named)
            if instead is None:
                raise
            raise instead from error

    return call


def _instead_of(
    error: Exception, function: Callable[..., Any], checks: Checks, arguments: tuple[Any, ...], named: dict[str, Any]
) -> BaseException | None:
    """The error that a caller gets instead; None if the error passes unchanged."""
    if isinstance(error, EverviewError) or _is_theirs(error, function, arguments):
        return None
    return _translated(error, checks, arguments, named)


def _is_theirs(error: Exception, function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether an error passes unchanged: the end of an iteration, the error that ends a with block, a call with
    a wrong number of arguments, an error of the caller's own code."""
    if function.__name__ == "__next__" and isinstance(error, StopIteration):
        return True
    if function.__name__ == "__exit__" and any(error is given for given in arguments):
        return True
    trace = error.__traceback__
    if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
        return True
    ours = {*_OURS, (function.__module__ or "").partition(".")[0]}
    return any(package not in ours and package not in sys.stdlib_module_names for package in _packages(trace))


def _packages(trace: TracebackType | None) -> Iterator[str]:
    """The packages of the code that an error has passed. Functions that Everview generates belong to no package."""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__")
        if isinstance(name, str):
            yield name.partition(".")[0]
        trace = trace.tb_next


def _translated(error: Exception, checks: Checks, arguments: tuple[Any, ...], named: dict[str, Any]) -> BaseException:
    if isinstance(error, MemoryError):
        return error
    if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
        return KeyboardInterrupt()
    try:
        checks.check(arguments, named)
    except InputError as wrong:
        return wrong
    return translated(error)


def translated(error: Exception, file: object = None) -> EverviewError:
    """An error of a library or of the operating system, about a file, as one of ours."""
    home = type(error).__module__.partition(".")[0]
    if isinstance(error, OSError):
        return _refused_by_system(error, error.filename if file is None else file)
    if home == "lmdb":
        return StoreError("the store cannot be used", detail=str(error), hint="open it again")
    if home == "pyarrow":
        return InputError("these values cannot be taken", detail=str(error).partition("\n")[0])
    if isinstance(error, RecursionError):
        return InputError("what was given is nested too deeply", hint="give it in parts")
    return InternalError.of(error)


def _refused_by_system(error: OSError, file: object) -> StoreError:
    what = "the operating system refuses" if file is None else f"{file} cannot be used"
    said = error.strerror or str(error)
    if error.errno in _FULL:
        return StoreFullError(f"{what}: {said}", hint="free some disk space and retry")
    return StoreError(f"{what}: {said}", hint="see that the directory is there and may be read and written")
