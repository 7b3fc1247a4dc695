"""Building relations: a checked query as a tree of relations.

Every construct that an operator can maintain becomes the relation of that
operator, and the rest of the query is re-evaluated in pieces as small as possible.

The order in which to read the modules: ``select`` takes a SELECT through its clauses;
``from_clause`` and ``join_clauses`` build FROM and WHERE, ``lateral`` what is computed of each row there,
``group_by`` GROUP BY, ``windows`` window functions, ``first_rows`` top-k by them, ``order`` ORDER BY and LIMIT,
``set_operations`` set operations; ``subqueries``, ``links`` and ``around`` turn subqueries into joins;
``reevaluate`` takes what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from sqlglot import exp

from everview.plan.build.bare_nulls import without_bare_nulls
from everview.plan.build.collated_comparisons import escaping
from everview.plan.build.context import BuildContext, NoOperator, Notice, QueryTyper, UntypedPart
from everview.plan.build.links import QueryPiece
from everview.plan.build.queries import build_query
from everview.plan.build.reevaluate import whole
from everview.plan.expressions import Field, of_field
from everview.plan.relations import Relation, Sort
from everview.sql.check import Checked
from everview.sql.options import ROUNDS

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


def build(checked: Checked, typer: QueryTyper, text: str = "", rounds: int = ROUNDS) -> Built:
    """The relation of a checked query that was read from ``text``; recursions in it are given up after
    so many ``rounds``."""
    sources = {source.name.lower(): source for source in checked.uses}
    context = BuildContext(typer, sources, text, rounds)
    for name, _ in checked.columns:
        context.names.fresh(name)
    collate = escaping(checked.tree)
    if collate is None:
        piece = _built(context, checked)
    else:
        piece = whole(context, checked.tree, None, NoOperator("a collation beyond one comparison", collate))
    columns = tuple(piece.relation.field(name) for name in piece.outputs)
    if [field.type for field in columns] != [kind for _, kind in checked.columns]:
        context = BuildContext(typer, sources, text, rounds)
        piece = whole(context, checked.tree, None, NoOperator("types that only the whole query has", checked.tree))
        columns = tuple(piece.relation.field(name) for name in piece.outputs)
    return Built(piece.relation, columns, piece.order or _read_order(checked, columns), tuple(context.notices))


def _built(context: BuildContext, checked: Checked) -> QueryPiece:
    """The query by operators. If DuckDB does not take a part of it by itself, or gives it other types than in the
    query (an empty list in a subquery takes the type of what it is compared with), the query is evaluated as it
    stands."""
    names = context.names.mark()
    why = "values whose type depends on where they are used"
    try:
        piece = build_query(context, without_bare_nulls(checked.tree), None)
        kinds = [piece.relation.field(name).type for name in piece.outputs]
        if kinds == [kind for _, kind in checked.columns]:
            return piece
    except UntypedPart:
        if checked.tree.find(exp.Null, exp.Array) is None:
            why = "a part that cannot be evaluated by itself"
    context.names.back_to(names)
    context.notices.clear()
    return whole(context, checked.tree, None, NoOperator(why))


def _read_order(checked: Checked, columns: tuple[Field, ...]) -> tuple[Sort, ...]:
    """The order in which a query that is evaluated as a whole is read: as far as it goes by columns that
    it shows, as they are."""
    by_name = {field.name: field for field in columns}
    known = takewhile(lambda one: one.column in by_name and one.expression.find(exp.Collate) is None, checked.order)
    return tuple(Sort(of_field(by_name[one.column or ""]), one.descending, one.nulls_first) for one in known)
