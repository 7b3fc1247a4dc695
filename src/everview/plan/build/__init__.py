"""Building relations: a checked query as a tree of relations.

One sentence: every construct that an operator can maintain becomes the relation of that
operator, and the rest of the query is re-evaluated in pieces as small as possible.

The order in which to read the modules: ``select`` takes a SELECT through its clauses;
``sources`` and ``joins`` build FROM and WHERE, ``lateral`` what is computed of each row there,
``groups`` GROUP BY, ``windows`` window functions, ``first_rows`` top-k by them, ``order`` ORDER BY and LIMIT,
``sets`` set operations; ``subqueries``, ``links`` and ``around`` turn subqueries into joins;
``reevaluate`` takes what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.plan.build.context import Context, Notice, Typer
from everview.plan.build.queries import build_query
from everview.plan.expressions import Field
from everview.plan.relations import Relation, Sort
from everview.sql.check import Checked

__all__ = ["Built", "Notice", "build"]


@dataclass(frozen=True)
class Built:
    """A query as a relation."""

    relation: Relation
    columns: tuple[Field, ...]
    """What it shows, in order."""
    order: tuple[Sort, ...]
    """How it is read."""
    notices: tuple[Notice, ...]


def build(checked: Checked, typer: Typer, text: str = "") -> Built:
    """The relation of a checked query that was read from ``text``."""
    sources = {source.name.lower(): source for source in checked.uses}
    context = Context(typer, sources, text)
    for name, _ in checked.columns:
        context.names.fresh(name)
    piece = build_query(context, checked.tree, None)
    columns = tuple(piece.relation.field(name) for name in piece.outputs)
    return Built(piece.relation, columns, piece.order, tuple(context.notices))
