"""Links: how a subquery that reads the rows around it becomes a join.

``inner = outer`` inside a subquery is a link; the subquery is built without it,
with the inner side as one of its columns (a group column, where it aggregates; a partition,
where it ranks), and then joined to the outer rows by it.

::

    SELECT o.id, (SELECT sum(i.price) FROM items i WHERE i.order = o.id) FROM orders o

    piece:   SELECT i.order, sum(i.price) FROM items i GROUP BY i.order     link: i.order = o.id
    joined:  orders o LEFT JOIN piece ON o.id = i.order

Other conditions that read both sides are the piece's rest, to be asked of each pair.
An aggregate without GROUP BY has a row even over nothing, which the join does not find: the
values it would have there are kept beside the piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.change.types import BIGINT, BOOLEAN
from everview.plan.build import join_clauses
from everview.plan.build.context import BuildContext, NoOperator, field_column
from everview.plan.build.query_scopes import QueryScope, by_key
from everview.plan.expressions import Expr, Field, of_field, operand, quoted
from everview.plan.relations import Aggregate, Call, Equality, Join, JoinKind, Relation, Sort, Way
from everview.sql.positions import START, position_of


@dataclass(frozen=True)
class Link:
    """``inner = outer``."""

    inner: str
    """A field of the piece."""
    outer: exp.Expr
    """As in the query."""
    nulls_match: bool = False


@dataclass(frozen=True)
class QueryPiece:
    """A query that has been built, and what ties it to the rows around it."""

    relation: Relation
    outputs: tuple[str, ...]
    """The fields of its columns, in order."""
    names: tuple[str, ...]
    """What the columns are called."""
    links: tuple[Link, ...] = ()
    rest: tuple[exp.Expr, ...] = ()
    """Further conditions: own columns as fields, those of the rows around it as in the query."""
    empty: tuple[str, ...] | None = None
    """What the outputs are over nothing, where there is a row over nothing that the links do not find."""
    order: tuple[Sort, ...] = ()
    """The order in which it is to be read."""

    @property
    def linked(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(link.inner for link in self.links))


def equalities(scope: QueryScope, piece: QueryPiece, relation: Relation | None = None) -> tuple[Equality, ...]:
    """The links as join keys."""
    found = []
    there = relation or piece.relation
    for link in piece.links:
        made = join_clauses.equality(
            scope.context, scope.expr(link.outer), of_field(there.field(link.inner)), link.nulls_match
        )
        if made is None:
            raise NoOperator("a subquery linked by values of different types", link.outer)
        found.append(made)
    return tuple(found)


def conditions(scope: QueryScope, piece: QueryPiece) -> list[exp.Expr]:
    """Links and rest as conditions over the fields of both sides."""
    made: list[exp.Expr] = []
    for link in piece.links:
        compare = exp.NullSafeEQ if link.nulls_match else exp.EQ
        made.append(compare(this=operand(scope.lower(link.outer)), expression=field_column(link.inner)))
    return made + [scope.lower(condition) for condition in piece.rest]


def attach(scope: QueryScope, piece: QueryPiece, place: exp.Expr) -> list[str]:
    """Join a piece with one row at most for each row of the scope; the texts of its outputs."""
    if piece.rest:
        raise NoOperator("a subquery linked by more than equalities", place)
    relation = piece.relation
    assert set(relation.key) <= set(piece.linked)
    texts = [quoted(name) for name in piece.outputs]
    if piece.empty is not None and any(value != "NULL" for value in piece.empty):
        mark = Field(scope.context.names.fresh("found"), BOOLEAN, nullable=False)
        relation = scope.context.extended(relation, [(mark, Expr("TRUE", BOOLEAN))])
        texts = [
            f"CASE WHEN {quoted(mark.name)} IS NULL THEN {value} ELSE {text} END" if value != "NULL" else text
            for text, value in zip(texts, piece.empty, strict=True)
        ]
    scope.relation = Join(JoinKind.LEFT, scope.relation, relation, equalities(scope, piece, relation))
    return texts


def attach_rows(scope: QueryScope, piece: QueryPiece, outer: bool, place: exp.Expr) -> list[str]:
    """Join a piece with any number of rows; the fields of its outputs."""
    if piece.empty is not None:
        texts = attach(scope, piece, place)
        made = scope.context.typed(texts, scope.relation)
        fields = [Field(scope.context.names.fresh(name), e.type) for name, e in zip(piece.outputs, made, strict=True)]
        if any(e.field is None for e in made):
            scope.relation = scope.context.extended(scope.relation, list(zip(fields, made, strict=True)))
            return [field.name for field in fields]
        return list(piece.outputs)
    kind = JoinKind.LEFT if outer else JoinKind.INNER
    scope.relation = join_clauses.join_on(
        scope.context, kind, scope.relation, piece.relation, conditions(scope, piece), place
    )
    return list(piece.outputs)


def value(scope: QueryScope, piece: QueryPiece, place: exp.Expr) -> str:
    """Join a piece of one column that stands for a value; the text of the value. Where the piece has
    several rows for one row of the scope, evaluating the value for that row is an error."""
    if set(piece.relation.key) <= set(piece.linked):
        (text,) = attach(scope, piece, place)
        return text
    if piece.rest:
        raise NoOperator("a subquery linked by more than equalities", place)
    context, relation = scope.context, piece.relation
    field = relation.field(piece.outputs[0])
    order = by_key(relation)
    first = Call(
        replace(field, name=context.names.fresh("first"), nullable=True, hidden=False),
        "first",
        (of_field(field),),
        order=order,
        sql=f"FIRST({quoted(field.name)} ORDER BY {', '.join(map(str, order))})",
    )
    groups = tuple((relation.field(name), of_field(relation.field(name))) for name in piece.linked)
    count = count_call(context.names.fresh("count"))
    grouped = replace(piece, relation=Aggregate(relation, groups, (first, count)))
    row = scope.relation.key
    found, total = attach(scope, replace(grouped, outputs=(first.field.name, count.field.name)), place)
    several = f"CAST({_several(context, place, total, row)} AS {field.type})"
    return f"CASE WHEN {total} > 1 THEN {several} ELSE {found} END"


def _several(context: BuildContext, place: exp.Expr, total: str, row: Sequence[str]) -> str:
    """The error of a value that several rows claim. It names the row that asks for the value: so
    it is evaluated for rows that ask, and no rule moves it to where there are others."""
    at = position_of(place, context.text) or START
    message = f"the subquery at line {at.line}, column {at.column} stands for one value and has "
    asking = " || ', ' || ".join(f"COALESCE(CAST({quoted(name)} AS VARCHAR), 'NULL')" for name in row)
    text = f"'{message}' || CAST({total} AS VARCHAR) || ' rows'" + (f" || ' for ' || {asking}" if row else "")
    return f"ERROR({text})"


def count_call(name: str, argument: Expr | None = None) -> Call:
    """count(*), or count of an expression."""
    sql = f"COUNT({argument.sql if argument else '*'})"
    return Call(Field(name, BIGINT, nullable=False), "count", (argument,) if argument else (), sql=sql, way=Way.SUM)


def counted(
    scope: QueryScope, piece: QueryPiece, more: tuple[str, ...] = (), argument: str | None = None
) -> QueryPiece:
    """How many rows the piece has for each set of linked values (and further fields); with an
    argument, also in how many of them it is not null."""
    context, relation = scope.context, piece.relation
    fields = [relation.field(name) for name in dict.fromkeys((*piece.linked, *more))]
    renamed = {f.name: replace(f, name=context.names.fresh(f.name), hidden=False) for f in fields}
    calls = [count_call(context.names.fresh("count"))]
    if argument is not None:
        calls.append(count_call(context.names.fresh("count"), of_field(relation.field(argument))))
    grouped = Aggregate(relation, tuple((renamed[f.name], of_field(f)) for f in fields), tuple(calls))
    links = tuple(replace(link, inner=renamed[link.inner].name) for link in piece.links)
    outputs = tuple(call.field.name for call in calls) + tuple(renamed[name].name for name in more)
    return QueryPiece(grouped, outputs, outputs, links, piece.rest)
