"""Namespaces: what the names of tables and views in a query stand for.

A query is checked against a :class:`Namespace`, which knows every table, view
and named query by its name, and nothing else of the catalog.

Names are DuckDB's: they keep the spelling they were created with, and two that differ in
upper and lower case only are one.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from everview.change.schema import RESERVED, Column
from everview.change.types import Type
from everview.errors import DefinitionError

RelationKind: TypeAlias = Literal["table", "view", "named query"]

SYSTEM = "everview"
"""The schema of the tables with the status of views."""
SYSTEM_TABLES = ("epochs", "groups", "stages", "view_updates", "views")

TABLE_FUNCTIONS = frozenset(
    {"unnest", "generate_series", "range", "repeat", "repeat_row", "json_each", "json_tree", "generate_subscripts"}
)
"""DuckDB's table functions that depend on their arguments only."""


def system_name(name: str) -> str:
    """How a namespace knows a table of the schema: a name that no table or view of a user can have."""
    return f"{RESERVED}{SYSTEM}_{fold(name)}"


def fold(name: str) -> str:
    """The form under which equal names are equal. DuckDB folds the letters A to Z only."""
    return "".join(char.lower() if char.isascii() else char for char in name)


def distinct_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names of a query's columns as DuckDB gives them to a table or view: the second ``a`` is ``a_1``."""
    taken: set[str] = set()
    met: Counter[str] = Counter()
    found = []
    for name in names:
        chosen = name
        while fold(chosen) in taken:
            met[fold(name)] += 1
            chosen = f"{name}_{met[fold(name)]}"
        taken.add(fold(chosen))
        found.append(chosen)
    return tuple(found)


def nearest(name: str, existing: Iterable[str]) -> str | None:
    """The existing name that was probably meant."""
    spelling = {fold(other): other for other in existing}
    near = difflib.get_close_matches(fold(name), spelling, n=1)
    return spelling[near[0]] if near else None


@dataclass(frozen=True)
class NamedRelation:
    """Something a query can read: a table, a materialized view, or a named query (what
    ``CREATE VIEW`` made), which is replaced by its text wherever it is used."""

    name: str
    kind: RelationKind
    columns: tuple[Column, ...]
    """What a query sees of it. A hidden key is not among them."""
    key: tuple[str, ...] = ()
    query: str = ""
    """The text of a named query, in DuckDB's SQL."""
    bag: bool = False
    """Equal rows may stand in it several times: it has no key that a query can see."""

    def __post_init__(self) -> None:
        if (self.kind == "named query") != bool(self.query):
            raise DefinitionError(f"{self.name} has a text if and only if it is a named query")
        if not self.columns:
            raise DefinitionError(f"{self.name} needs a column")

    def column(self, name: str) -> Column | None:
        """The column of that name in any spelling."""
        folded = fold(name)
        return next((column for column in self.columns if fold(column.name) == folded), None)


def inputs_of(relations: Iterable[NamedRelation]) -> dict[str, list[tuple[str, Type]]]:
    """The columns of relations with their types, as DuckDB is given them."""
    return {relation.name: [(column.name, column.type) for column in relation.columns] for relation in relations}


class Namespace(Protocol):
    """Finds relations by name, in any spelling of upper and lower case."""

    def find(self, name: str) -> NamedRelation | None: ...

    def names(self) -> list[str]: ...


class Names:
    """A namespace in memory."""

    def __init__(self, relations: Iterable[NamedRelation] | Mapping[str, NamedRelation] = ()) -> None:
        given = relations.values() if isinstance(relations, Mapping) else relations
        self._relations = {fold(relation.name): relation for relation in given}

    def find(self, name: str) -> NamedRelation | None:
        return self._relations.get(fold(name))

    def names(self) -> list[str]:
        return [relation.name for relation in self._relations.values()]
