"""Which functions of Everview a piece of work passes through, and where it passes from package to package.

A hop is a call from a function of one package into another package, the first time it is made. Packages that all
others use (``change``: frontiers, types, columns; ``store/encoding``: bytes to columns and back) and special methods
are no hops.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import everview
import everview.store.contract

SOURCES = Path(everview.__file__).parent
SHARED = frozenset({"change", "store/encoding"})


@dataclass(frozen=True)
class Function:
    """A function of the sources."""

    file: str
    """Below the package's folder."""
    name: str
    """With its class."""

    @property
    def package(self) -> str:
        return str(Path(self.file).parent)

    @property
    def is_hop(self) -> bool:
        """Whether a call of it from another package is a hop."""
        is_nested = "<locals>" in self.name
        return self.package not in SHARED and not is_nested and not self.name.rpartition(".")[2].startswith("_")

    def summary(self) -> str:
        """The first sentence of what is written about it, here or in the contract that it fulfils."""
        module = importlib.import_module("everview." + self.file.removesuffix(".py").replace("/", "."))
        *owners, name = self.name.removesuffix(".__init__").split(".")
        owner: object = module
        for part in owners:
            owner = inspect.getattr_static(owner, part)
        text = _written_about(inspect.getattr_static(owner, name)) or _contract_of(owner, name)
        return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].removesuffix(".")


def _written_about(found: object) -> str:
    found = getattr(found, "__func__", getattr(found, "fget", found))
    return inspect.cleandoc(getattr(found, "__doc__", None) or "")


def _contract_of(owner: object, name: str) -> str:
    """What the contract of stores says of a method."""
    for contract in vars(everview.store.contract).values():
        if getattr(contract, "_is_protocol", False) and name in vars(contract):
            members = (member for member in vars(contract) if not member.startswith("_"))
            if isinstance(owner, type) and all(hasattr(owner, member) for member in members):
                return _written_about(vars(contract)[name])
    return ""


@dataclass
class Trace:
    """What was called."""

    functions: dict[Function, None] = field(default_factory=dict)
    hops: dict[Function, None] = field(default_factory=dict)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Follow this thread."""
        before = sys.getprofile()
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        function = _function(frame) if event == "call" else None
        if function is None:
            return
        self.functions.setdefault(function)
        if function.is_hop and function not in self.hops and _caller(frame) != function.package:
            self.hops.setdefault(function)

    @property
    def files(self) -> set[str]:
        return {function.file for function in self.functions}


def _function(frame: FrameType | None) -> Function | None:
    """The named function of a package of ours that a frame is of."""
    if frame is None or "<" in frame.f_code.co_qualname.replace("<locals>", ""):
        return None
    try:
        file = Path(frame.f_code.co_filename).relative_to(SOURCES)
    except ValueError:
        return None
    if len(file.parts) == 1:
        return None
    return Function(str(file), frame.f_code.co_qualname)


def _caller(frame: FrameType) -> str | None:
    """The package that a call comes from, however it got there."""
    above = frame.f_back
    while above is not None:
        function = _function(above)
        if function is not None:
            return function.package
        above = above.f_back
    return None
