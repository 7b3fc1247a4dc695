"""Columns by their number, ``#1``, as the columns that they are.

::

    SELECT #2 FROM people          SELECT name FROM people

A number whose column shares its name with another stays, and DuckDB evaluates the query as it stands.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.sql.dialects import to_sql
from everview.sql.namespace import fold
from everview.sql.typer import Described


def positional_columns(tree: exp.Expr, describe: Callable[[str], Described | None]) -> None:
    """Replace the numbers in every SELECT below a node, in place."""
    for number in list(tree.find_all(exp.PositionalColumn)):
        select = number.parent_select
        if not isinstance(select, exp.Select):
            continue
        every = exp.Select(expressions=[exp.Star()])
        for key in ("from_", "joins"):
            every.set(key, select.copy().args.get(key))
        found = describe(to_sql(every))
        names = [fold(name) for name in found.names] if found else []
        at = int(number.name) - 1
        if 0 <= at < len(names) and names.count(names[at]) == 1:
            number.replace(exp.column(exp.to_identifier(names[at], quoted=True)))
