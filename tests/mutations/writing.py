"""Faults in how a tree is written as a text, and in what is Everview's own: WITH TIES.

Everything that is evaluated is a text that was written from a tree, so a writer that forgets a word is
as bad as a parser that does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from everview.sql import passes
from everview.sql.own_dialect import Everview
from tests.mutations.mutant import Fault, Mutant, instead, parsed, wrapped
from tests.mutations.targets import Reading
from tests.mutations.trees import ORDERED, WINDOWED, lose

TIED = "SELECT id, amount FROM orders ORDER BY amount FETCH FIRST 2 ROWS WITH TIES"
PLAIN_TIES = "SELECT a FROM visits ORDER BY a LIMIT 2 WITH TIES"


def written(kind: type[exp.Expr], *parts: str) -> Fault:
    """Parts of nodes of a kind are not written."""

    def around(real: Callable[..., str]) -> Callable[..., str]:
        def sql(self: Any, node: Any, key: str | None = None, comment: bool = True) -> str:
            if key is not None or not isinstance(node, kind):
                return real(self, node, key, comment)
            lost = {part: node.args.pop(part) for part in parts if part in node.args}
            try:
                return real(self, node, key, comment)
            finally:
                node.args.update(lost)

        return sql

    return wrapped(Everview.Generator, "sql", around)


def bare(kind: type[exp.Expr]) -> Fault:
    """Of nodes of a kind only what is inside is written."""

    def around(real: Callable[..., str]) -> Callable[..., str]:
        def sql(self: Any, node: Any, key: str | None = None, comment: bool = True) -> str:
            return real(self, node.this if key is None and isinstance(node, kind) else node, key, comment)

        return sql

    return wrapped(Everview.Generator, "sql", around)


def _lower(real: Callable[..., str]) -> Callable[..., str]:
    """Texts are written in lower case."""

    def sql(self: Any, node: Any, key: str | None = None, comment: bool = True) -> str:
        found = real(self, node, key, comment)
        return found.lower() if key is None and isinstance(node, exp.Literal) else found

    return sql


MUTANTS: tuple[Mutant, ...] = (
    Mutant("NULLS FIRST is not written", Reading.WRITTEN, written(exp.Ordered, "nulls_first"), (ORDERED,)),
    Mutant("DESC is not written", Reading.WRITTEN, written(exp.Ordered, "desc"), (WINDOWED,)),
    Mutant("frames are not written", Reading.WRITTEN, written(exp.Window, "spec"), (WINDOWED,)),
    Mutant(
        "texts are written in lower case",
        Reading.WRITTEN,
        wrapped(Everview.Generator, "sql", _lower),
        ("SELECT id, status || 'X' AS x FROM orders",),
    ),
    Mutant(
        "ELSE is not written",
        Reading.WRITTEN,
        written(exp.Case, "default"),
        ("SELECT id, CASE WHEN amount > 1 THEN 1 ELSE 0 END AS x FROM orders",),
    ),
    Mutant(
        "the side of a join is not written",
        Reading.WRITTEN,
        written(exp.Join, "side"),
        ("SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.amount < v.a",),
    ),
    Mutant(
        "parentheses are not written",
        Reading.WRITTEN,
        bare(exp.Paren),
        ("SELECT id, (amount + 1) * 2 AS x FROM orders WHERE amount < 100",),
    ),
    Mutant("NOT is not written", Reading.WRITTEN, bare(exp.Not), ("SELECT id, NOT status = 'a' AS x FROM orders",)),
    Mutant("a rank becomes a row number", Reading.TIES, instead(exp, "Rank", exp.RowNumber), (TIED, PLAIN_TIES)),
    Mutant(
        "ties are not written", Reading.TIES, instead(passes, "write_ties", lambda tree, text: tree), (TIED, PLAIN_TIES)
    ),
    Mutant("ties are lost", Reading.TIES, parsed(lose(exp.LimitOptions, "with_ties")), (TIED, PLAIN_TIES)),
    Mutant(
        "ties have no mark",
        Reading.TIES,
        wrapped(
            passes,
            "mark_ties",
            lambda real: lambda tree, text: (lose(exp.LimitOptions, "with_ties")(tree), real(tree, text))[1],
        ),
        (TIED, PLAIN_TIES),
    ),
)
