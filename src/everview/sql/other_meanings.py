"""What other dialects mean by words that DuckDB has too.

One sentence: sqlglot translates most of it, and what it leaves in DuckDB's words with another
meaning is put right here, or refused, before a text becomes DuckDB's.

| dialects | there | becomes |
|---|---|---|
| PostgreSQL's, SQLite, T-SQL, … | integers divide to integers | ``a // b`` |
| MySQL's, Spark's, BigQuery, T-SQL | ``dayofweek`` of a Sunday is 1 | ``dayofweek(d) + 1`` |
| MySQL's, Spark's | ``weekday`` of a Monday is 0 | ``isodow(d) - 1`` |
| MySQL's, ClickHouse | ``length`` counts bytes | ``strlen(s)`` |
| MySQL's, Spark's | ``substring`` from 0 is like nothing else | refused |
| T-SQL | ``len`` leaves out blanks at the end | ``length(rtrim(s))`` |
| SQLite | ``LIKE`` ignores case | ``ILIKE`` |
| Oracle | ``greatest`` and ``least`` are null if one value is | a ``CASE`` |
| Oracle | an empty text is null | ``''`` is refused, ``a \\|\\| b`` skips nulls |

What depends on types or on collations stays DuckDB's: a fraction cast to an integer is rounded, and
text is compared by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import Dialects, exp

from everview.errors import SqlRefusedError
from everview.sql.positions import error_at, offset_of

_MYSQL = frozenset({"mysql", "doris", "starrocks", "singlestore"})
_SPARK = frozenset({"spark", "spark2", "databricks", "hive"})
_TSQL = frozenset({"tsql", "fabric"})


_ALL = frozenset(dialect.value for dialect in Dialects if dialect.value)


def with_our_meaning(tree: exp.Expr, dialect: str, text: str) -> exp.Expr:
    """A copy of a tree, as it was read in another dialect, that means the same once written as DuckDB's."""
    holder = exp.Paren(this=tree.copy())
    for dialects, change in _CHANGES:
        if dialect in dialects:
            for node in reversed(list(holder.find_all(exp.Func, exp.Like, exp.DPipe, exp.Div, exp.Literal))):
                try:
                    changed = change(node)
                except _NoCounterpart as reason:
                    offset = offset_of(node)
                    place = offset if offset is not None else offset_of(tree)
                    raise error_at(
                        SqlRefusedError, text, place, str(reason.args[0]), hint=str(reason.args[1])
                    ) from None
                if changed is not None:
                    node.replace(changed)
    found: exp.Expr = holder.this.pop()
    return found


class _NoCounterpart(Exception):
    """There is nothing in DuckDB that means the same: what is wrong, and what to write."""


def _divided_by_type(node: exp.Expr) -> exp.Expr | None:
    """DuckDB's ``//`` goes by the types of what it divides: integers to an integer, all else exactly."""
    if not isinstance(node, exp.Div) or not node.args.get("typed"):
        return None
    divisor = node.expression.copy()
    if node.args.get("safe"):
        divisor = exp.Nullif(this=divisor, expression=exp.Literal.number(0))
    return exp.IntDiv(this=node.this.copy(), expression=divisor)


def _sunday_is_one(node: exp.Expr) -> exp.Expr | None:
    part = node.this.name.lower() if isinstance(node, exp.Extract) else ""
    if isinstance(node, exp.DayOfWeek) or part in ("dayofweek", "dow"):
        return exp.Paren(this=exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
    return None


def _monday_is_zero(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "weekday":
        return None
    number = exp.Anonymous(this="isodow", expressions=[part.copy() for part in node.expressions])
    return exp.Paren(this=exp.Sub(this=number, expression=exp.Literal.number(1)))


def _length_in_bytes(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Length) or not node.args.get("binary"):
        return None
    return exp.Anonymous(this="strlen", expressions=[node.this.copy()])


def _length_without_blanks(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Length) or isinstance(node.this, exp.Trim):
        return None
    return exp.Length(this=exp.Trim(this=node.this.copy(), position="TRAILING"))


def _from_one(node: exp.Expr) -> exp.Expr | None:
    start = node.args.get("start") if isinstance(node, exp.Substring) else None
    if isinstance(start, exp.Literal) and start.name == "0":
        raise _NoCounterpart("a substring from 0 has no counterpart in DuckDB's SQL", "count characters from 1")
    return None


def _ignores_case(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Like):
        return None
    return exp.ILike(this=node.this.copy(), expression=node.expression.copy())


def _null_if_one_is(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Greatest | exp.Least):
        node.set("ignore_nulls", False)
    return None


def _empty_is_null(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Literal) and node.is_string and not node.name:
        raise _NoCounterpart("'' is null in Oracle and a text of its own here", "write NULL, or another dialect")
    if not isinstance(node, exp.DPipe):
        return None
    both = exp.Anonymous(this="concat", expressions=[node.this.copy(), node.expression.copy()])
    return exp.Nullif(this=both, expression=exp.Literal.string(""))


_CHANGES: tuple[tuple[frozenset[str], Callable[[exp.Expr], exp.Expr | None]], ...] = (
    (_ALL, _divided_by_type),
    (_MYSQL | _SPARK | _TSQL | {"bigquery"}, _sunday_is_one),
    (_MYSQL | _SPARK, _monday_is_zero),
    (_MYSQL | {"clickhouse"}, _length_in_bytes),
    (_MYSQL | _SPARK, _from_one),
    (_TSQL, _length_without_blanks),
    (frozenset({"sqlite"}), _ignores_case),
    (frozenset({"oracle"}), _null_if_one_is),
    (frozenset({"oracle"}), _empty_is_null),
)
