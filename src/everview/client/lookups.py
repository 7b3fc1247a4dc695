"""Conditions on a key: the rows of a table that a query can need.

If a query compares the first columns of a table's key with constants, only the
rows with these values are read, and DuckDB still evaluates the whole condition over them.

::

    SELECT * FROM lines WHERE order_id = 7 AND line IN (1, 2)     two rows, looked up
    SELECT * FROM lines WHERE order_id = 7 AND amount > 5         one prefix of the key, scanned
    SELECT * FROM lines WHERE line = 1                            the whole table

A condition counts if it is joined to others with AND in the WHERE of the query that names the
table: then no row of the table that fails it can be seen in the result, whatever the table is
joined with. Joins that look at rows by their order or their number are the exception.

The constant must be the same value in the key's type as DuckDB compares it in: ``id = 5.5`` on an
INTEGER key, and anything on a floating-point key, is left to the scan.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from everview.change.types import INTEGERS, Kind, Type, parse_type
from everview.errors import DefinitionError
from everview.sql.dialects import to_sql
from everview.sql.typer import typer

MOST = 1_000
"""Keys or prefixes that are looked up one by one; for more, the table is scanned."""

_PLAIN_JOINS = frozenset({"", "INNER", "CROSS", "OUTER"})
_ENDS: tuple[object, ...] = (
    *(datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime.max),
    *(end.replace(tzinfo=datetime.UTC) for end in (datetime.datetime.min, datetime.datetime.max)),
)
"""DuckDB's Python values for infinity."""
_MOMENTS = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


@dataclass(frozen=True)
class Lookup:
    """Rows to read: those with one of these values in the first columns of the key."""

    prefixes: tuple[tuple[object, ...], ...]
    whole: bool
    """Whether the values are whole keys."""


def lookup(table: exp.Table, key: Sequence[tuple[str, Type]]) -> Lookup | None:
    """The lookup of a checked query in one of its tables; None: it may need every row."""
    select = table.find_ancestor(exp.Select)
    if select is None or not key or not _is_plain(table, select):
        return None
    where = select.args.get("where")
    if where is None:
        return None
    alias = table.alias_or_name.lower()
    constants_of: dict[str, list[exp.Expr]] = {}
    for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        _note(part.unnest(), alias, constants_of)
    found: list[list[object]] = []
    count = 1
    for name, kind in key:
        constants = constants_of.get(name.lower(), [])
        count *= len(constants)
        values = _values(constants, kind) if 0 < count <= MOST else None
        if values is None:
            break
        found.append(values)
    if not found:
        return None
    prefixes = tuple(dict.fromkeys(itertools.product(*found)))
    return Lookup(prefixes, whole=len(found) == len(key))


def _is_plain(table: exp.Table, select: exp.Select) -> bool:
    """Whether the table is in the FROM of the query, and no join there depends on an order."""
    start = select.args.get("from_")
    joins = select.args.get("joins") or []
    tables = [start.this if start is not None else None, *(join.this for join in joins)]
    if not any(one is table for one in tables) or any(table.args.get(name) for name in ("sample", "pivots", "joins")):
        return False
    return all(not join.method and join.kind.upper() in _PLAIN_JOINS for join in joins) and not select.args.get(
        "sample"
    )


def _note(part: exp.Expr, alias: str, constants_of: dict[str, list[exp.Expr]]) -> None:
    """Note the constants that one condition allows for a column of the table; the first counts."""
    if isinstance(part, exp.EQ):
        for column, value in ((part.this, part.expression), (part.expression, part.this)):
            if _of_table(column, alias) and _is_constant(value):
                constants_of.setdefault(column.name.lower(), [value])
    elif isinstance(part, exp.In) and _of_table(part.this, alias):
        values = part.args.get("expressions") or []
        if values and all(_is_constant(value) for value in values):
            constants_of.setdefault(part.this.name.lower(), values)


def _of_table(node: exp.Expr, alias: str) -> bool:
    return isinstance(node, exp.Column) and node.table.lower() == alias


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean | exp.Cast | exp.Neg | exp.Paren) and all(
        isinstance(part, exp.Literal | exp.Boolean | exp.Cast | exp.Neg | exp.Paren | exp.DataType | exp.DataTypeParam)
        for part in node.walk()
    )


def _values(constants: Sequence[exp.Expr], kind: Type) -> list[object] | None:
    """The constants as values of the key's type; None if one is not exactly representable."""
    texts = [to_sql(node) for node in constants]
    parts = [
        f"{{'type': typeof({sql}), 'same': TRY_CAST({sql} AS {kind}) = {sql}, 'value': TRY_CAST({sql} AS {kind})}}"
        for sql in texts
    ]
    found = typer().value(f"[{', '.join(parts)}]")
    if not isinstance(found, list) or not all(one["same"] for one in found):
        return None
    try:
        exact = all(_exact(kind, parse_type(text)) for text in {one["type"] for one in found})
    except DefinitionError:
        return None
    values = [one["value"] for one in found]
    return values if exact and all(_is_faithful(value, kind) for value in values) else None


def _is_faithful(value: object, kind: Type) -> bool:
    """Whether the Python value is the value that DuckDB compares: DuckDB returns infinity as Python's last day, and a
    date beyond that as text."""
    if kind.kind in _MOMENTS or kind.kind in (Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP_S, Kind.TIMESTAMP_MS):
        return not isinstance(value, str) and value not in _ENDS
    return True


def _exact(kind: Type, compared: Type) -> bool:
    """Whether values that DuckDB compares as equal are equal in the key's type."""
    if kind == compared:
        return kind.kind not in (Kind.REAL, Kind.DOUBLE, Kind.INTERVAL, Kind.JSON, Kind.TIMESTAMP_NS)
    numbers = {*INTEGERS, Kind.DECIMAL}
    if kind.kind in numbers:
        return compared.kind in numbers or compared.kind is Kind.VARCHAR
    if kind.kind in _MOMENTS:
        return compared.kind in _MOMENTS or compared.kind is Kind.VARCHAR
    return compared.kind is Kind.VARCHAR and kind.kind in (Kind.UUID, Kind.TIME, Kind.BOOLEAN)
