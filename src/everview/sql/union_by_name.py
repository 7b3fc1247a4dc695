"""UNION BY NAME as a union by position.

::

    SELECT a, b FROM t UNION ALL BY NAME SELECT c, a FROM u
    SELECT l.a, l.b, NULL AS c FROM (…) AS l UNION ALL SELECT r.a, NULL AS b, r.c FROM (…) AS r
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from everview.sql.dialects import to_sql
from everview.sql.namespace import fold
from everview.sql.typer import Described


def union_by_name(tree: exp.Expr, describe: Callable[[str], Described | None]) -> None:
    """Rewrite the unions by name below a node whose sides DuckDB can describe."""
    for union in reversed(list(tree.find_all(exp.SetOperation))):
        if not union.args.get("by_name"):
            continue
        sides = [union.this, union.expression]
        described = [describe(to_sql(side)) for side in sides]
        left, right = described
        if left is None or right is None:
            continue
        there = {fold(name) for name in left.names}
        names = [*left.names, *(name for name in right.names if fold(name) not in there)]
        for key, side, own in (("this", sides[0], left.names), ("expression", sides[1], right.names)):
            union.set(key, _by_position(side, own, names))
        union.set("by_name", None)


def _by_position(side: exp.Expr, own: Sequence[str], names: Sequence[str]) -> exp.Select:
    there = {fold(name) for name in own}
    columns = [
        exp.alias_(
            exp.column(name, table="side", quoted=True) if fold(name) in there else exp.null(), name, quoted=True
        )
        for name in names
    ]
    inner = side if isinstance(side, exp.Subquery) and not side.alias else exp.Subquery(this=side.copy())
    inner = inner.copy()
    inner.set("alias", exp.TableAlias(this=exp.to_identifier("side")))
    return exp.select(*columns).from_(inner)
