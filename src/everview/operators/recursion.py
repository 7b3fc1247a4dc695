"""Recursive queries that would not end, ended.

Every round of a recursion calls a function that counts it, and after so many rounds the
call fails, which is the partition's own error like any other.

::

    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE EVERVIEW_GOES_ON(100000))

Rounds are counted and not seconds: whether a partition has an answer must depend on its rows alone,
or what is taken away would not be what was given. Rows count too, a hundred as one round, for a
recursion may double its rows with every round. Partitions that are evaluated together take at least as
many rounds as each alone, and where that is too many they are evaluated alone.

Queries in their users' own words ask too: DuckDB has written that into them
(:mod:`everview.sql.bounded_recursion`).
"""

from __future__ import annotations

import functools

import pyarrow as pa
from sqlglot import exp

from everview.plan.expressions import parsed, written
from everview.plan.maintenance.operator_definitions import ReevaluationOperator, RowsOperator
from everview.sql.bounded_recursion import GOES_ON

_ROWS = 100

NO_END = "no end after"
"""How the reason begins why a partition has no answer whose recursion was given up."""


class RoundCounter:
    """Counts the rounds of the query that is being evaluated: what DuckDB calls as :data:`GOES_ON`."""

    def __init__(self) -> None:
        self._taken = 0
        self.exceeded: int | None = None
        """The limit that the query came to."""

    def begin(self) -> None:
        self._taken, self.exceeded = 0, None

    def __call__(self, limits: pa.ChunkedArray) -> pa.ChunkedArray:
        self._taken += 1 + len(limits) // _ROWS
        limit = limits[0].as_py()
        if self._taken > limit:
            self.exceeded = limit
            raise RecursionError
        return pa.chunked_array([pa.repeat(True, len(limits))])


def bounded_query(operator: RowsOperator | ReevaluationOperator) -> str:
    """The query of a step as it is evaluated."""
    return guarded(operator.query, operator.rounds) if operator.rounds else operator.query


@functools.lru_cache(maxsize=1024)
def guarded(sql: str, limit: int) -> str:
    """The query with its recursions asking in every round.

    >>> query = "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n FROM r WHERE n < 9) SELECT n FROM r"
    >>> print(guarded(query, 5).partition(" UNION ")[2])
    SELECT "n" FROM "r" WHERE "n" < 9 AND EVERVIEW_GOES_ON(5)) SELECT "n" FROM "r"
    """
    tree = parsed(sql).copy()
    for clause in tree.find_all(exp.With):
        for part in clause.expressions if clause.args.get("recursive") else ():
            if isinstance(part.this, exp.SetOperation):
                _ask(part.this.expression, part.alias.lower(), limit)
    return written(tree)


def _ask(query: exp.Expr, name: str, limit: int) -> None:
    """In every SELECT of a query that reads the recursion itself."""
    for select in list(query.find_all(exp.Select)):
        first = select.args.get("from_")
        read = [*([first.this] if first is not None else []), *(join.this for join in select.args.get("joins") or ())]
        if any(isinstance(source, exp.Table) and source.name.lower() == name for source in read):
            asked = exp.Anonymous(this=GOES_ON, expressions=[exp.Literal.number(limit)])
            select.where(asked, copy=False)
