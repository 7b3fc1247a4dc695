"""The words of random queries: which parts of the grammar there are, what is in sight, and how choices are made."""

from __future__ import annotations

import enum
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


class Feature(enum.Enum):
    """A part of the grammar. Filters, projections and expressions are always on."""

    JOIN = "inner joins by equalities, comma joins"
    OUTER_JOIN = "left, right and full joins"
    SEMI_JOIN = "semi and anti joins"
    USING = "joins with USING"
    FREE_JOIN = "joins without an equality"
    ONE_ROW = "cross joins with one row"
    SUBQUERY = "subqueries in FROM"
    WITH = "WITH queries"
    VALUES = "VALUES, range(…)"
    UNNEST = "unnest of a row's list"
    LATERAL = "LATERAL subqueries"
    TIME_WINDOW = "TUMBLE and HOP"
    AGGREGATE = "count, sum, avg, min, max with GROUP BY or without"
    DISTINCT_AGGREGATE = "aggregates of DISTINCT values"
    FILTERED_AGGREGATE = "aggregates with FILTER"
    GENERAL_AGGREGATE = "other aggregates"
    GROUPING_SETS = "GROUPING SETS, ROLLUP, CUBE, grouping()"
    HAVING = "HAVING"
    WINDOW = "window functions"
    FRAME = "window functions with a frame"
    QUALIFY = "QUALIFY"
    FIRST_ROWS = "row_number(), rank(), dense_rank() compared with a number"
    DISTINCT = "SELECT DISTINCT"
    DISTINCT_ON = "SELECT DISTINCT ON"
    TOP_K = "ORDER BY with LIMIT and OFFSET"
    TIES = "LIMIT WITH TIES"
    UNION_ALL = "UNION ALL"
    SET_OPERATION = "UNION, INTERSECT, EXCEPT, the latter two with ALL"
    EXISTS = "EXISTS"
    IN = "IN with a subquery"
    SCALAR = "subqueries that stand for a value"
    ANY_ALL = "comparisons with ANY and ALL"
    CORRELATED = "subqueries that read the rows around them, by equalities"
    UNEQUAL = "… and by other conditions"


ALL = frozenset(Feature)

Kind = str
"""``i`` whole numbers, ``f`` floats and decimals, ``t`` texts, ``b`` booleans, ``l`` lists, ``d`` timestamps."""

KINDS = {"INTEGER": "i", "BIGINT": "i", "SMALLINT": "i", "DOUBLE": "f", "DECIMAL(8,2)": "f", "VARCHAR": "t"}
KINDS |= {"BOOLEAN": "b", "INTEGER[]": "l", "TIMESTAMP": "d"}
COMPARED = "iftb"
NAMES = ("id", "k", "x", "s", "v", "count", "order", "group", "set", "copy", "branch", "first", "link", "n", "there")


@dataclass(frozen=True)
class Atom:
    """Something an expression can be made of."""

    text: str
    kind: Kind
    column: bool = True
    """A column that a subquery inside may read."""


@dataclass(frozen=True)
class Drawn:
    """A query and its columns."""

    text: str
    columns: tuple[tuple[str, Kind], ...]


@dataclass
class Scope:
    """What an expression may read."""

    atoms: list[Atom]
    outer: list[Atom] = field(default_factory=list)
    """Columns of the rows around the query."""
    depth: int = 0
    """How deep subqueries inside may be nested."""
    chain: int = 0
    """The first atom after the last comma of FROM: what a join's condition may read."""
    commas: list[str] = field(default_factory=list)
    """Conditions between items that commas separate."""
    over: list[str] = field(default_factory=list)
    """The window in which rows are counted one by one, once there is one: equal rows come in an order
    that two windows would not share."""

    def of(self, kinds: str) -> list[Atom]:
        return [atom for atom in self.atoms if atom.kind in kinds]


class Choices:
    """One random generator, and what was chosen so far."""

    def __init__(self, rng: random.Random, features: frozenset[Feature]) -> None:
        self.rng = rng
        self.features = features
        self.used: set[Feature] = set()
        self.tables: set[str] = set()
        self.aliases = 0
        self.named: list[Drawn] = []
        """WITH queries in sight; the name stands as text."""

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def may(self, feature: Feature, share: float) -> bool:
        if feature in self.features and self.chance(share):
            self.used.add(feature)
            return True
        return False

    def pick(self, items: Sequence[T]) -> T:
        return self.rng.choice(items)

    def one_of(self, *choices: tuple[Feature | None, float, Callable[[], T]]) -> T:
        """One of the choices that are switched on, by their weights."""
        there = [choice for choice in choices if choice[0] is None or choice[0] in self.features]
        feature, _, make = self.rng.choices(there, [weight for _, weight, _ in there])[0]
        if feature is not None:
            self.used.add(feature)
        return make()

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def total(self, order: list[str]) -> list[str]:
        """All of these, in some order and direction."""
        return [one + self.direction() for one in self.rng.sample(order, len(order))]

    def direction(self) -> str:
        return self.pick(["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"])


def quoted(name: str) -> str:
    return f'"{name}"' if name in ("order", "group", "set", "first", "count") else name


def columns_of(alias: str, columns: Sequence[tuple[str, Kind]]) -> list[Atom]:
    return [Atom(f"{alias}.{quoted(name)}", kind) for name, kind in columns]


def column_name(atom: Atom) -> str:
    return atom.text.partition(".")[2]


def reads_column(text: str) -> bool:
    """Whether an expression reads a column: DuckDB refuses to order by a constant."""
    return re.search(r"\bq\d+\.", text) is not None
