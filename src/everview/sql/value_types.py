"""The types of values inside a query, asked of DuckDB.

A value is given to a function that takes none, and DuckDB's complaint contains its type:
``No function matches the given name and argument types 'pi(DECIMAL(3,1))'``.

So the type of a value is known wherever it stands, in a correlated subquery as in an aggregate.
"""

from __future__ import annotations

import re

from sqlglot import exp

from everview.errors import SqlRefusedError
from everview.sql.dialects import to_sql
from everview.sql.expansion import expanded
from everview.sql.namespace import Namespace, inputs_of
from everview.sql.positions import error_at, offset_of
from everview.sql.typer import Described, Failure, typer

FLOATS = ("FLOAT", "DOUBLE")
_INTEGER = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)(_LITERAL)?")
_ASKED = re.compile(r"No function matches the given name and argument types 'pi\((.*)\)'", re.DOTALL)
_AFTER_FROM = ("group", "having", "qualify", "order", "distinct", "limit", "offset")


class ValueTypes:
    """The types of parts of a query."""

    def __init__(self, holder: exp.Expr, namespace: Namespace, text: str) -> None:
        self._holder = holder
        self._namespace = namespace
        self._text = text

    def of(self, node: exp.Expr) -> str:
        """The type of a value as DuckDB writes it; nothing where the query has none, for another reason."""
        if isinstance(node, exp.Literal):
            return "VARCHAR" if node.is_string else "INTEGER" if node.is_int else "DECIMAL"
        complaint = _ASKED.match(self._asked(node)) or _ASKED.match(self._asked_alone(node))
        if complaint is None and not isinstance(self._described(), Failure):
            raise error_at(
                SqlRefusedError,
                self._text,
                offset_of(node),
                "the type of this value cannot be found out, and what the dialect means depends on it",
                hint="write the conversion that is meant: CAST(… AS …), or the expression instead of its alias",
            )
        return complaint[1] if complaint else ""

    def is_alias(self, key: exp.Expr) -> bool:
        """Whether a key of GROUP BY is the alias of an output: DuckDB knows no expression of one there."""
        return "aliases cannot be used as part of an expression" in self._asked(key)

    def _asked(self, node: exp.Expr) -> str:
        """DuckDB's complaint about the value as the argument of a function that takes none."""
        asked = exp.Anonymous(this="pi", expressions=[exp.Null()])
        node.replace(asked)
        asked.set("expressions", [node])
        try:
            found = self._described()
        finally:
            asked.replace(node)
        return found.message if isinstance(found, Failure) else ""

    def _asked_alone(self, node: exp.Expr) -> str:
        """The same with the value as the only column of its SELECT: in its place a function around it may
        make it another value than the one that is grouped by."""
        select = node.find_ancestor(exp.Select)
        if select is None:
            return ""
        asked = exp.Anonymous(this="pi", expressions=[_aggregated(node.copy())])
        before = dict(select.args)
        for key in (*_AFTER_FROM, "expressions"):
            select.set(key, None)
        select.set("expressions", [asked])
        try:
            found = self._described()
        finally:
            for key in (*_AFTER_FROM, "expressions"):
                select.set(key, before.get(key))
        return found.message if isinstance(found, Failure) else ""

    def _described(self) -> Described | Failure:
        tree, uses = expanded(self._holder.this, self._namespace, self._text)
        inputs = inputs_of(uses)
        return typer().attempt(to_sql(tree), inputs)


def _aggregated(value: exp.Expr) -> exp.Expr:
    """The value with its columns aggregated where others are."""
    if value.find(exp.AggFunc) is None or value.find(exp.Window) is not None:
        return value
    for column in list(value.find_all(exp.Column)):
        if column.find_ancestor(exp.AggFunc) is None:
            column.replace(exp.Anonymous(this="ANY_VALUE", expressions=[column.copy()]))
    return value


def is_integer(kind: str) -> bool:
    return _INTEGER.fullmatch(kind) is not None


def is_fraction(kind: str) -> bool:
    return kind in FLOATS or kind.startswith("DECIMAL")


def is_text(kind: str) -> bool:
    return kind in ("VARCHAR", "STRING_LITERAL")
