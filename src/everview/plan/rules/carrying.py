"""Carried columns: where in a query the value of the partition stands.

Of the rows of each part of a query we know which columns have the partition's value in
every row, and a condition that equates two of them keeps to one partition.

See :mod:`everview.plan.rules.distribution` for what is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp


class NotApartError(Exception):
    """The query mixes rows of different partitions, or it may."""


@dataclass(frozen=True)
class CarriedColumns:
    """What is known of the rows of a part of the query."""

    columns: tuple[str, ...] | None
    """In lower case; None: unknown."""
    carried: frozenset[str] = frozenset()
    constant: bool = False
    """It reads no input."""

    def called(self, names: Sequence[str]) -> CarriedColumns:
        """The same with the first columns under other names."""
        if not names:
            return self
        if self.columns is None:
            return replace(self, columns=tuple(names), carried=frozenset())
        columns = (*names, *self.columns[len(names) :])
        places = [n for n, name in enumerate(self.columns) if name in self.carried]
        return CarriedColumns(columns, certain(columns, places), self.constant)


def certain(columns: Sequence[str], places: Sequence[int]) -> frozenset[str]:
    """The names that stand for carried columns and for nothing else."""
    others = {name for n, name in enumerate(columns) if n not in places}
    return frozenset(columns[n] for n in places) - others


Named = tuple[str, str]
"""A source of a FROM clause and a column of it; a column that USING made one has no source."""


@dataclass
class Scope:
    """The rows that a FROM clause makes."""

    sources: dict[str, CarriedColumns]
    carried: set[Named]
    constant: bool
    merges: bool = False
    """Columns of two sources are one, by USING."""

    def carries(self, tree: exp.Expr | None) -> bool:
        """Whether an expression is a carried column."""
        tree = tree.unnest() if tree is not None else None
        if not isinstance(tree, exp.Column) or isinstance(tree.this, exp.Star):
            return False
        name, table = tree.name.lower(), tree.table.lower()
        if table:
            return (table, name) in self.carried
        if ("", name) in self.carried:
            return True
        holders = [alias for alias, rows in self.sources.items() if rows.columns is None or name in rows.columns]
        return len(holders) == 1 and (holders[0], name) in self.carried


def equates(part: exp.Expr, one: Scope, other: Scope) -> bool:
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return False
    left, right = part.this, part.expression
    return (one.carries(left) and other.carries(right)) or (one.carries(right) and other.carries(left))


def links(part: exp.Expr, inner: Scope, outer: Scope) -> bool:
    """Whether a condition of a subquery ties it to the partition of the row around it."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return False
    sides = (part.this.unnest(), part.expression.unnest())
    for mine, theirs in (sides, sides[::-1]):
        # The name must be one that only the outer query can mean.
        named = isinstance(theirs, exp.Column) and theirs.table and theirs.table.lower() not in inner.sources
        if named and inner.carries(mine) and outer.carries(theirs):
            return True
    return False
