"""Subqueries in expressions, as joins.

What must hold of a row as a whole (EXISTS, IN, and their opposites) becomes a semi
or anti join, and every other subquery is joined as columns and replaced by an expression over them.

===============================  ==============================================================
``EXISTS (…)`` as a condition    semi join by the links; uncorrelated: joined with the count of its rows
``x IN (…)`` as a condition      semi join by x and the links
``x NOT IN (…)``                 anti join; where nulls may occur, only rows for which there are no
                                 rows at all, or no nulls and x is not null
a value                          left join with the piece, which has one row for each link
any of them elsewhere            left join with counts by the links, and a CASE over them
``x > ANY (…)``, ``ALL``         left join with count, min and max by the links, and a CASE
===============================  ==============================================================
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.plan.build import around, group_by, join_clauses, links
from everview.plan.build.context import NoOperator, field_column, nullable, text_of
from everview.plan.build.links import QueryPiece
from everview.plan.build.query_scopes import QueryScope, has_query
from everview.plan.expressions import Field, of_field, operand, parsed, quoted
from everview.plan.relations import Aggregate, Call, Equality, Join, JoinKind, Way


def keep(scope: QueryScope, condition: exp.Expr) -> None:
    """Keep the rows for which a condition with subqueries holds."""
    bare, negated = _plainer(condition.unnest()), False
    while isinstance(bare, exp.Not):
        bare, negated = _plainer(bare.this.unnest()), not negated
    if isinstance(bare, exp.Exists) and _keep_existing(scope, bare, negated):
        return
    if isinstance(bare, exp.In) and bare.args.get("query") and _keep_members(scope, bare, negated):
        return
    scope.keep(absorbed(scope, condition))


def _plainer(node: exp.Expr) -> exp.Expr:
    """``= ANY`` as IN, ``<> ALL`` as NOT IN, and IN of what has one row always as a comparison."""
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any) and has_query(node.expression):
        node = exp.In(this=node.this.copy(), query=_query(node.expression).copy())
    if isinstance(node, exp.NEQ) and isinstance(node.expression, exp.All) and has_query(node.expression):
        return exp.Not(this=exp.In(this=node.this.copy(), query=_query(node.expression).copy()))
    if isinstance(node, exp.In) and node.args.get("query") and len(_sides(node)) == 1 and _is_one_row(_query(node)):
        return exp.EQ(this=node.this.copy(), expression=exp.Subquery(this=_query(node).copy()))
    return node


def _is_one_row(query: exp.Expr) -> bool:
    """Whether a query has one row whatever it reads: an aggregate of everything."""
    more = ("group", "having", "qualify", "limit", "offset", "with_")
    return (
        isinstance(query, exp.Select) and group_by.is_grouped(query) and not any(query.args.get(part) for part in more)
    )


def _query(node: exp.Expr) -> exp.Expr:
    """The query inside EXISTS, IN, ANY, ALL or parentheses."""
    found: exp.Expr = node.args.get("query") or node.this
    while isinstance(found, exp.Subquery | exp.Paren) and not found.args.get("limit") and not found.args.get("order"):
        found = found.this
    return found


def _keep_existing(scope: QueryScope, node: exp.Exists, negated: bool) -> bool:
    piece = around.linked(scope, _query(node), needed=False, plain=False)
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    if piece.empty is not None:  # an aggregate of everything has a row always
        scope.keep(exp.Boolean(this=not negated))
    elif not piece.links and not piece.rest:
        test = _exists(scope, piece, node)
        scope.keep(parsed(f"NOT {test}" if negated else test).copy())
    else:
        scope.relation = join_clauses.join_on(
            scope.context, kind, scope.relation, piece.relation, links.conditions(scope, piece), node
        )
    return True


def _keep_members(scope: QueryScope, node: exp.In, negated: bool) -> bool:
    sides = _sides(node)
    if any(has_query(side) for side in sides):
        return False
    piece = around.linked(scope, _query(node), plain=negated)
    if len(piece.outputs) != len(sides):
        raise NoOperator("IN of rows of this form", node)
    if piece.empty is not None and (negated or any(value != "NULL" for value in piece.empty)):
        raise NoOperator("IN of an aggregate", node)
    values = scope.exprs(sides)
    pairs = list(zip(values, piece.outputs, strict=True))
    if negated and any(nullable(v, scope.relation) or piece.relation.field(o).nullable for v, o in pairs):
        if len(pairs) > 1 or piece.rest:
            raise NoOperator("NOT IN with nulls", node)
        ((value, output),) = pairs
        total, filled = links.attach(scope, links.counted(scope, piece, argument=output), node)
        test = f"COALESCE({total}, 0) = 0 OR (NOT {value.sql} IS NULL AND {filled} = {total})"
        scope.keep(parsed(test).copy())
    compared: list[exp.Expr] = [
        exp.EQ(this=operand(parsed(value.sql)), expression=field_column(output)) for value, output in pairs
    ]
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    scope.relation = join_clauses.join_on(
        scope.context, kind, scope.relation, piece.relation, [*compared, *links.conditions(scope, piece)], node
    )
    return True


def _sides(node: exp.In) -> list[exp.Expr]:
    side = node.this.unnest()
    return list(side.expressions) if isinstance(side, exp.Tuple) else [side]


def absorb_within(scope: QueryScope, node: exp.Expr) -> None:
    """Replace the subqueries inside a node, in place."""
    for part in list(node.iter_expressions()):
        if has_query(part):
            part.replace(absorbed(scope, part))


def absorbed(scope: QueryScope, tree: exp.Expr) -> exp.Expr:
    """The tree with its subqueries replaced by expressions over fields of the scope."""
    if not has_query(tree):
        return tree
    holder = exp.Paren(this=tree.copy())
    while (found := _first(holder)) is not None:
        found.replace(exp.Paren(this=parsed(_value(scope, found)).copy()))
    return holder.this.unnest() if isinstance(holder.this, exp.Paren) else holder.this


def _first(node: exp.Expr) -> exp.Expr | None:
    """The first subquery in a tree, with what asks for it."""
    for part in node.iter_expressions():
        if isinstance(part, exp.Exists) or (isinstance(part, exp.In) and part.args.get("query")):
            return part
        if (
            isinstance(part, exp.Binary)
            and isinstance(part.expression, exp.Any | exp.All)
            and has_query(part.expression)
        ):
            return part
        if isinstance(part, exp.Subquery):
            return part
        if isinstance(part, exp.Query):
            raise NoOperator("a subquery as a list", part)
        found = _first(part)
        if found is not None:
            return found
    return None


def _value(scope: QueryScope, node: exp.Expr) -> str:
    """The text of an expression that stands for a subquery, once joined."""
    plainer = _plainer(node)
    if isinstance(plainer, exp.Not | exp.EQ) and plainer is not node:
        return text_of(scope.lower(absorbed(scope, plainer)))
    if isinstance(node, exp.Exists):
        piece = around.linked(scope, _query(node), needed=False)
        return _exists(scope, piece, node) if piece.empty is None else "TRUE"
    if isinstance(plainer, exp.In):
        return _member(scope, plainer)
    if isinstance(node, exp.Binary):
        return _compared(scope, node)
    piece = around.linked(scope, _query(node) if _is_bare(node) else node)
    if len(piece.outputs) != 1:
        raise NoOperator("a subquery of several columns as a value", node)
    return links.value(scope, piece, node)


def _is_bare(node: exp.Expr) -> bool:
    return not any(node.args.get(part) for part in ("order", "limit", "offset", "with_"))


def _exists(scope: QueryScope, piece: QueryPiece, node: exp.Expr) -> str:
    (total,) = links.attach(scope, links.counted(scope, piece), node)
    return f"(COALESCE({total}, 0) > 0)"


def _member(scope: QueryScope, node: exp.In) -> str:
    """``x IN (…)`` with its three answers."""
    sides = _sides(node)
    if len(sides) != 1 or has_query(sides[0]):
        raise NoOperator("IN of rows in this place", node)
    piece = around.linked(scope, _query(node))
    if piece.empty is not None or piece.rest:
        raise NoOperator("IN of a subquery linked in this way", node)
    value = scope.expr(sides[0])
    (output,) = piece.outputs
    made = join_clauses.equality(scope.context, value, of_field(piece.relation.field(output)))
    if made is None:
        raise NoOperator("IN of values of different types", node)
    if made.right.field is None:  # members are counted as what they are compared as
        member = Field(scope.context.names.fresh("member"), made.right.type)
        piece = replace(piece, relation=scope.context.extended(piece.relation, [(member, made.right)]))
        output = member.name
    total, filled = links.attach(scope, links.counted(scope, piece, argument=output), node)
    matches = links.counted(scope, piece, more=(output,))
    count, same = matches.outputs
    keys = (*links.equalities(scope, matches), Equality(made.left, of_field(matches.relation.field(same))))
    scope.relation = Join(JoinKind.LEFT, scope.relation, matches.relation, keys)
    return (
        f"CASE WHEN NOT {quoted(count)} IS NULL THEN TRUE WHEN COALESCE({total}, 0) = 0 THEN FALSE "
        f"WHEN ({value.sql}) IS NULL OR {filled} < {total} THEN NULL ELSE FALSE END"
    )


_ANY_OF = {exp.GT: ("min",), exp.GTE: ("min",), exp.LT: ("max",), exp.LTE: ("max",)}
_ALL_OF = {exp.GT: ("max",), exp.GTE: ("max",), exp.LT: ("min",), exp.LTE: ("min",), exp.EQ: ("min", "max")}


def _compared(scope: QueryScope, node: exp.Binary) -> str:
    """``x > ANY (…)`` and ``x > ALL (…)`` by the least and the greatest value, ``x = ALL (…)`` by both;
    ``x <> ANY (…)`` is its opposite."""
    every = isinstance(node.expression, exp.All)
    if isinstance(node, exp.NEQ) and not every:
        opposite = exp.EQ(this=node.this.copy(), expression=exp.All(this=node.expression.this.copy()))
        return f"NOT ({_compared(scope, opposite)})"
    ends = (_ALL_OF if every else _ANY_OF).get(type(node))
    if ends is None or has_query(node.this):
        raise NoOperator("a comparison with ANY or ALL of this form", node)
    piece = around.linked(scope, _query(node.expression))
    if piece.empty is not None or piece.rest or len(piece.outputs) != 1:
        raise NoOperator("a comparison with ANY or ALL of a subquery of this form", node)
    context = scope.context
    field = piece.relation.field(piece.outputs[0])
    if not field.type.is_scalar:
        raise NoOperator("a comparison of lists or structs with ANY or ALL of a subquery", node)
    counts = links.counted(scope, piece, argument=field.name)
    assert isinstance(counts.relation, Aggregate)
    bounds = tuple(
        Call(
            Field(context.names.fresh(function), field.type),
            function,
            (of_field(field),),
            sql=f"{function.upper()}({quoted(field.name)})",
            way=Way.EXTREME,
        )
        for function in ends
    )
    grouped = replace(counts.relation, calls=(*counts.relation.calls, *bounds))
    names = tuple(bound.field.name for bound in bounds)
    counts = replace(counts, relation=grouped, outputs=(*counts.outputs, *names))
    total, filled, *found = links.attach(scope, counts, node)
    tests = [type(node)(this=operand(scope.lower(node.this)), expression=parsed(end).copy()) for end in found]
    test = text_of(exp.and_(*tests, copy=False))
    empty, decided, then = ("TRUE", f"NOT ({test})", "FALSE") if every else ("FALSE", test, "TRUE")
    unless = "TRUE" if every else "FALSE"
    return (
        f"CASE WHEN COALESCE({total}, 0) = 0 THEN {empty} WHEN {decided} THEN {then} "
        f"WHEN ({test}) IS NULL OR {filled} < {total} THEN NULL ELSE {unless} END"
    )
