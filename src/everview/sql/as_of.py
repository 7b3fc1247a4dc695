"""As-of joins that DuckDB is not asked.

DuckDB 2.0.0 does not return from an as-of RIGHT or FULL join in which no row finds a
match, so such a join is never part of a text that is evaluated.

A view of one is planned without asking it (:mod:`everview.plan.build.join_clauses`).
"""

from __future__ import annotations

from sqlglot import exp

from everview.errors import SqlRefusedError
from everview.sql.positions import error_at, offset_of


def endless_join(tree: exp.Expr) -> exp.Join | None:
    """The first as-of RIGHT or FULL join in a tree."""
    joins = tree.find_all(exp.Join)
    return next((join for join in joins if join.method.upper() == "ASOF" and join.side in ("RIGHT", "FULL")), None)


def refuse_endless_join(tree: exp.Expr, text: str) -> None:
    """Refuse to have a tree evaluated in which there is such a join."""
    join = endless_join(tree)
    if join is not None:
        raise error_at(
            SqlRefusedError,
            text,
            offset_of(join.this) if text else None,
            f"an as-of {join.side} join cannot be evaluated here",
            why="DuckDB does not return from it where no row finds a match",
            hint="make it a view of its own with equalities and one inequality in ON, or write ASOF LEFT JOIN",
        )
