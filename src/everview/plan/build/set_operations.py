"""Set operations: UNION, INTERSECT and EXCEPT, with ALL or without.

Both sides are brought to the types that DuckDB gives the result, and matched by
position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from everview.change.types import BIGINT
from everview.plan.build import order, queries
from everview.plan.build.context import BuildContext, NoOperator, field_column
from everview.plan.build.links import QueryPiece
from everview.plan.build.query_scopes import QueryScope
from everview.plan.expressions import Definition, Expr, Field, of_field, quoted
from everview.plan.relations import Relation, SetKind, SetOperation, Union, project
from everview.sql.aggregates import aggregates

_KINDS: dict[type[exp.Expr], SetKind] = {
    exp.Union: SetKind.UNION,
    exp.Intersect: SetKind.INTERSECT,
    exp.Except: SetKind.EXCEPT,
}


def build_set(context: BuildContext, query: exp.SetOperation, alias: str | None) -> QueryPiece:
    """A set operation with its ORDER BY and LIMIT."""
    if query.args.get("by_name") or query.args.get("on"):
        raise NoOperator("a set operation by name", query)
    prefix = None if alias is None else context.names.source(alias or "subquery")
    every = not query.args.get("distinct")
    kind = next(found for node, found in _KINDS.items() if isinstance(query, node))
    parts: list[exp.Expr] = [query.left, query.right]
    if kind is SetKind.UNION and every:
        parts = _flat(query)
    pieces = [queries.build_query(context, part, "") for part in parts]
    if any(piece.links or piece.rest for piece in pieces):
        raise NoOperator("a set operation that reads the rows around it", query)
    relations = _fitted(context, [_shown(piece) for piece in pieces])
    names = pieces[0].names
    columns = tuple(
        Field(
            name if prefix is None else context.names.fresh(f"{prefix}.{name}"),
            relations[0].shown[n].type,
            any(relation.shown[n].nullable for relation in relations),
        )
        for n, name in enumerate(names)
    )
    relation: Relation
    if kind is SetKind.UNION and every:
        branch = Field(context.names.fresh("branch"), BIGINT, nullable=False, hidden=True)
        relation = Union(tuple(relations), columns, branch)
    else:
        copy = Field(context.names.fresh("copy"), BIGINT, nullable=False, hidden=True) if every else None
        relation = SetOperation(kind, every, relations[0], relations[1], columns, copy)
    scope = QueryScope(context, relation, {})
    outputs = tuple(field.name for field in columns)
    by_name = {name.lower(): field_column(output) for name, output in reversed(list(zip(names, outputs, strict=True)))}
    asked = _by_outputs(query, [field_column(output) for output in outputs])
    wanted = order.named(asked, by_name, [field_column(output) for output in outputs])
    limited = order.limited(scope, query, wanted, ())
    return QueryPiece(scope.relation, outputs, names, order=limited if alias is None else ())


def _by_outputs(query: exp.Expr, outputs: Sequence[exp.Expr]) -> exp.Expr | None:
    """The order, in which an expression of the first SELECT is the column that it makes: ORDER BY count(*)."""
    asked = query.args.get("order")
    if asked is None:
        return None
    first = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    made = first.selects if isinstance(first, exp.Select) and len(first.selects) == len(outputs) else []
    known = {_unqualified(one.unalias()): output for one, output in reversed(list(zip(made, outputs, strict=False)))}
    found: exp.Expr = asked.copy()
    for part in found.expressions:
        key = part.this
        if isinstance(key, exp.Column | exp.Literal):
            continue
        if _unqualified(key) in known:
            part.set("this", known[_unqualified(key)].copy())
        elif aggregates(key):
            raise NoOperator("an order by what no column of a set operation is", key)
    return found


def _unqualified(node: exp.Expr) -> str:
    found = node.copy()
    for column in found.find_all(exp.Column):
        column.set("table", None)
    return str(found.sql(normalize=True, identify=True)).lower()


def _flat(query: exp.Expr) -> list[exp.Expr]:
    """The members of a UNION ALL of UNION ALLs."""
    if isinstance(query, exp.Union) and not any(query.args.get(part) for part in ("distinct", "by_name", "with_")):
        return [part for side in (query.left, query.right) for part in _member(side)]
    return [query]


def _member(side: exp.Expr) -> list[exp.Expr]:
    bare = not any(side.args.get(part) for part in ("order", "limit", "offset", "with_"))
    return _flat(side) if bare else [side]


def _shown(piece: QueryPiece) -> Relation:
    """The relation of a piece with its columns first and nothing else shown."""
    relation = piece.relation
    if tuple(field.name for field in relation.shown) == piece.outputs:
        return relation
    return project(relation, [(replace(f, hidden=False), of_field(f)) for f in map(relation.field, piece.outputs)])


def _fitted(context: BuildContext, relations: list[Relation]) -> list[Relation]:
    """The relations with the types that DuckDB gives their union."""
    kinds = [tuple(field.type for field in relation.shown) for relation in relations]
    if len(set(kinds)) == 1:
        return relations
    inputs = {f"in{n}": [(f"c{i}", kind) for i, kind in enumerate(types)] for n, types in enumerate(kinds)}
    text = " UNION ALL ".join(f"SELECT * FROM in{n}" for n in range(len(relations)))
    wanted = [kind for _, kind in context.described(text, inputs)]
    fitted: list[Relation] = []
    for relation in relations:
        outputs: list[Definition] = []
        for field, kind in zip(relation.shown, wanted, strict=True):
            if field.type == kind:
                outputs.append((field, of_field(field)))
            else:
                made = Field(context.names.fresh(field.name), kind, field.nullable)
                outputs.append((made, Expr(f"CAST({quoted(field.name)} AS {kind})", kind)))
        fitted.append(project(relation, outputs))
    return fitted
