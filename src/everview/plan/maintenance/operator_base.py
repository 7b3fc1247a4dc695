"""What the definitions of all operators have in common: identity, and what views add to them.

The fields of an operator are of three kinds. Its *identity* is what it computes and is part of the
step's fingerprint. What it has *gained* are named things that several views add to one step: columns,
accumulators, calls. What stands *beside* follows from the identity, or is for people. Neither of the
last two is part of the fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar, cast

from everview.errors import DefinitionError
from everview.plan.maintenance.recorded import Tagged, encoded

_GAINS = "gains"
_BESIDE = "beside"


@dataclass(frozen=True)
class Gained:
    """Something that a view adds to an operator, under a name."""

    name: str
    """Equal names mean equal things within one operator."""


G = TypeVar("G", bound=Gained)
T = TypeVar("T")


def gained(kind: type[G]) -> tuple[G, ...]:
    """A field for things of this kind that views add, in the order of their names."""
    return cast(tuple[G, ...], field(default=(), metadata={_GAINS: kind}))


def beside(default: T) -> T:
    """A field that is no part of the fingerprint."""
    made: T = field(default=default, metadata={_BESIDE: True})
    return made


@dataclass(frozen=True, kw_only=True)
class Operator(Tagged):
    """What a step does. Its name is for people, and the tag of its recorded form."""

    meaning: ClassVar[str | None] = None
    """What fingerprints contain in place of the name, where operators of two names mean the same."""

    def identity(self) -> dict[str, Any]:
        """What a fingerprint is computed over, as plain values."""
        return {one.name: encoded(getattr(self, one.name)) for one in fields(self) if not one.metadata}

    @property
    def gained(self) -> tuple[Gained, ...]:
        """All that views have added."""
        return tuple(item for one in self._gaining() for item in getattr(self, one.name))

    def with_gained(self, added: Iterable[Gained]) -> Self:
        """The operator with these as well; of two of one name the later one is kept."""
        by_kind: dict[type[Gained], dict[str, Gained]] = {}
        for item in (*self.gained, *added):
            by_kind.setdefault(type(item), {})[item.name] = item
        held: dict[str, Any] = {}
        for one in self._gaining():
            items = by_kind.pop(one.metadata[_GAINS], {})
            held[one.name] = tuple(items[name] for name in sorted(items))
        if by_kind:
            raise DefinitionError(f"{self.name} cannot hold a {next(iter(by_kind)).__name__}")
        return replace(self, **held)

    def widened(self, held: Operator) -> Self:
        """The operator with what another of the same identity has gained beyond it."""
        return self.with_gained((*held.gained, *self.gained))

    def _gaining(self) -> list[Field[Any]]:
        return [one for one in fields(self) if _GAINS in one.metadata]

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise DefinitionError(f"{self.name}: {what}", detail=repr(self))
