"""GROUP BY: group columns, grouping sets and aggregates.

After an aggregate, an expression is what it was over the group columns and the
aggregates, each of which is a field now.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

from sqlglot import exp

from everview.change.schema import RESERVED
from everview.change.types import BIGINT
from everview.plan.build import function_calls, subqueries
from everview.plan.build.context import NoOperator, field_column, nullable, text_of
from everview.plan.build.links import Link
from everview.plan.build.query_scopes import QueryScope, has_query
from everview.plan.expressions import Definition, Expr, Field, quoted
from everview.plan.relations import Aggregate, Call
from everview.sql.aggregates import computed_parts, outer_aggregates, plain_columns

Sets = list[list[exp.Expr]]


def is_grouped(query: exp.Expr) -> bool:
    if query.args.get("group") or query.args.get("having"):
        return True
    if any(True for part in computed_parts(query) for _ in function_calls.aggregate_calls(part)):
        return True
    return bool(outer_aggregates(query))


def build_groups(scope: QueryScope, query: exp.Expr, links: list[Link]) -> dict[str, str] | None:
    """Group the scope. For one group over everything that is linked to the rows around it: what
    each aggregate is over nothing."""
    context = scope.context
    sets = _sets(query)
    _absorb_keys(scope, query, sets)
    lifted = _lifted(scope, query)
    nodes = [call for part in computed_parts(query) for call in function_calls.aggregate_calls(part)] + list(
        lifted.values()
    )
    for node in nodes:
        subqueries.absorb_within(scope, node)
    relation = scope.relation
    texts = [list(dict.fromkeys(scope.texts(one))) for one in sets]
    keys = list(dict.fromkeys(text for one in texts for text in one))
    linked = [quoted(link.inner) for link in links]
    several = len(texts) > 1
    groups: list[Definition] = []
    known: dict[str, str] = {}
    for expression in context.typed(dict.fromkeys([*keys, *linked]), relation):
        plain = expression.field
        name = plain if plain is not None and not several else context.names.fresh(plain or "group")
        missing = several and not all(expression.sql in one for one in texts)
        may_be_null = nullable(expression, relation) or missing
        groups.append((Field(name, expression.type, may_be_null), expression))
        known[expression.sql] = name
    made: list[Call] = []
    texts_of = {id(node): text_of(scope.lower(node)) for node in nodes}
    for node in nodes:
        tree = scope.lower(node)
        text = texts_of[id(node)]
        if text not in known and not isinstance(tree, exp.Grouping):
            call = function_calls.aggregate(
                context, relation, tree, context.names.fresh(function_calls.function_of(tree))
            )
            made.append(call)
            known[text] = call.field.name
    if not groups and not made:  # HAVING alone: the one row has to hold something
        made.append(
            function_calls.aggregate(context, relation, exp.Count(this=exp.Star()), context.names.fresh("count"))
        )
    at = {expression.sql: number for number, (_, expression) in enumerate(groups)}
    numbers = tuple(tuple(at[text] for text in dict.fromkeys([*one, *linked])) for one in texts) if several else ()
    number = Field(context.names.fresh("set"), BIGINT, nullable=False, hidden=True) if several else None
    scope.relation = Aggregate(relation, tuple(groups), tuple(made), numbers, number)
    links[:] = [replace(link, inner=known[quoted(link.inner)]) for link in links]
    _groupings(scope, query, texts, number, known)
    scope.known = known
    scope.columns |= {place: known[texts_of[id(node)]] for place, node in lifted.items()}
    if links and texts == [[]]:
        return {call.field.name: "0" if call.function in function_calls.COUNTS else "NULL" for call in made}
    if links and any(not one for one in texts):
        raise NoOperator("an empty grouping set linked to the rows around it", query)
    return None


def _lifted(scope: QueryScope, query: exp.Expr) -> dict[tuple[str, str], exp.Expr]:
    """The aggregates of a query that stand in its subqueries. There they become columns of the rows around,
    under the names that are returned with them."""
    found = outer_aggregates(query)
    alias = scope.context.names.source(f"{RESERVED}aggregates") if found else ""
    lifted: dict[tuple[str, str], exp.Expr] = {}
    for number, node in enumerate(found):
        if any(isinstance(part, exp.Query) for part in node.walk()):
            raise NoOperator("an aggregate over a subquery, of the rows around it", node)
        lifted[alias, f"a{number}"] = node.copy()
        node.replace(exp.column(f"a{number}", table=alias, quoted=True))
    return lifted


def _absorb_keys(scope: QueryScope, query: exp.Expr, sets: Sets) -> None:
    """Group columns with subqueries in them: computed before the groups are, and taken as such
    wherever the query repeats them."""
    for one in sets:
        for at, key in enumerate(one):
            if not has_query(key):
                continue
            expression = scope.expr(subqueries.absorbed(scope, key))
            field = Field(scope.context.names.fresh("group"), expression.type)
            scope.relation = scope.context.extended(scope.relation, [(field, expression)])
            for part in computed_parts(query):
                for node in [node for node in part.walk() if node == key]:
                    node.replace(field_column(field.name))
            one[at] = field_column(field.name)


def _groupings(
    scope: QueryScope, query: exp.Expr, texts: list[list[str]], number: Field | None, known: dict[str, str]
) -> None:
    """GROUPING(…): which of the columns a row is not grouped by, as bits."""
    for part in computed_parts(query):
        for node in part.find_all(exp.Grouping):
            tree = scope.lower(node)
            wanted = [text_of(one.unnest()) for one in tree.expressions]
            bits = [
                sum(1 << (len(wanted) - 1 - n) for n, text in enumerate(wanted) if text not in one) for one in texts
            ]
            text = text_of(tree)
            if text in known:
                continue
            cases = " ".join(f"WHEN {n} THEN {value}" for n, value in enumerate(bits))
            value = f"CASE {quoted(number.name)} {cases} END" if number else str(bits[0])
            field = Field(scope.context.names.fresh("grouping"), BIGINT, nullable=False)
            scope.relation = scope.context.extended(scope.relation, [(field, Expr(f"CAST({value} AS BIGINT)", BIGINT))])
            known[text] = field.name


def _sets(query: exp.Expr) -> Sets:
    """The grouping sets: one with all columns, if the query has no others."""
    group = query.args.get("group")
    if group is None:
        return [[]]
    if group.args.get("all"):
        assert isinstance(query, exp.Select)
        shown = [part.unalias() for part in plain_columns(query)]
        return [
            [
                one
                for one in shown
                if not any(True for _ in function_calls.aggregate_calls(one)) and not one.find(exp.Window)
            ]
        ]
    parts = [*group.expressions]
    for name in ("rollup", "cube", "grouping_sets"):
        found = group.args.get(name) or []
        parts += found if isinstance(found, list) else [found]
    return [[one for chosen in picked for one in chosen] for picked in product(*map(_alternatives, parts))]


def _alternatives(part: exp.Expr) -> Sets:
    if isinstance(part, exp.Rollup):
        items = [_columns(one) for one in part.expressions]
        return [[c for item in items[:n] for c in item] for n in range(len(items), -1, -1)]
    if isinstance(part, exp.Cube):
        items = [_columns(one) for one in part.expressions]
        return [
            [c for n in chosen for c in items[n]]
            for size in range(len(items), -1, -1)
            for chosen in combinations(range(len(items)), size)
        ]
    if isinstance(part, exp.GroupingSets):
        return [one for item in part.expressions for one in _alternatives(item)]
    return [_columns(part)]


def _columns(part: exp.Expr) -> list[exp.Expr]:
    if isinstance(part, exp.Tuple):
        return list(part.expressions)
    return [part.unnest()]
