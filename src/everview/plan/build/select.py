"""SELECT: its clauses in the order in which they are evaluated.

FROM and WHERE, then groups, HAVING, windows, QUALIFY, lists unnested, DISTINCT ON,
ORDER BY with LIMIT, the columns, and DISTINCT; each clause takes the scope one step further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.plan.build import first_rows, group_by, lateral, order, subqueries, windows
from everview.plan.build.context import Around, BuildContext, NoOperator, field_column, nullable, text_of
from everview.plan.build.from_clause import from_clause
from everview.plan.build.function_calls import windows as windows_in
from everview.plan.build.links import Link, QueryPiece
from everview.plan.build.query_scopes import Columns, QueryScope, by_key, conjuncts, has_query, inside, is_local
from everview.plan.collations import is_collated
from everview.plan.expressions import Definition, Expr, Field, of_field, quoted, replaced
from everview.plan.relations import Distinct, Sort, TopK, project
from everview.sql.copies import copied


@dataclass
class _Select:
    """A SELECT on its way."""

    query: exp.Expr
    scope: QueryScope
    links: list[Link] = field(default_factory=list)
    rest: list[exp.Expr] = field(default_factory=list)
    empty: dict[str, str] | None = None
    around: Around | None = None

    @property
    def partition(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(link.inner for link in self.links))


def build_select(context: BuildContext, query: exp.Expr, alias: str | None, needed: bool) -> QueryPiece:
    """A SELECT as a relation."""
    query = copied(query)
    if not needed:
        _without_columns(query)
    windows.named_windows(query)
    first_rows.move_first_rows(context, query)
    relation, columns, later = from_clause(context, query)
    made = _Select(
        query, QueryScope(context, relation, columns), around=context.around.get(query.meta.get("around", ""))
    )
    if made.around is not None:
        made.links += [Link(new, field_column(old), nulls_match=True) for new, old in made.around.fields.items()]
    for condition in later:
        if is_local(condition, columns):
            subqueries.keep(made.scope, condition)
        else:
            _link(made, condition)
    if group_by.is_grouped(query):
        if made.rest:
            raise NoOperator("an aggregate linked to the rows around it by more than equalities", made.rest[0])
        made.empty = group_by.build_groups(made.scope, query, made.links)
        _having(made)
    _windows(made)
    _unnest(made)
    return _columns(made, alias)


def _without_columns(query: exp.Expr) -> None:
    """Only the existence of rows matters: columns and orders do not."""
    if query.args.get("offset") is None and order.limit_of(query)[0] != 0:
        query.set("limit", None)
        query.set("order", None)
        query.set("distinct", None)
        if not query.args.get("qualify"):
            grouped = group_by.is_grouped(query)
            query.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
            if grouped and not group_by.is_grouped(query):
                query.set("expressions", [exp.alias_(exp.Count(this=exp.Star()), "one")])


def _link(made: _Select, condition: exp.Expr) -> None:
    """A condition that reads the rows around the query."""
    columns = made.scope.columns
    if has_query(condition):
        raise NoOperator("a subquery that reads rows two levels up", condition)
    if isinstance(condition, exp.EQ | exp.NullSafeEQ):
        for own, other in ((condition.this, condition.expression), (condition.expression, condition.this)):
            if own.find(exp.Column) and is_local(own, columns) and not _reads(other, columns):
                inner = made.scope.expr(own.unnest())
                if is_collated(inner) or other.find(exp.Collate):
                    raise NoOperator("a collation in what links a subquery to the rows around it", condition)
                name = inner.field
                if name is None:
                    name = made.scope.context.names.fresh("link")
                    made.scope.relation = made.scope.context.extended(
                        made.scope.relation, [(Field(name, inner.type), inner)]
                    )
                made.links.append(Link(name, other.unnest().copy(), isinstance(condition, exp.NullSafeEQ)))
                return
    made.rest.append(_half_lowered(condition, columns))


def _reads(node: exp.Expr, columns: Columns) -> bool:
    return any((c.table.lower(), c.name.lower()) in columns for c in node.find_all(exp.Column))


def _half_lowered(node: exp.Expr, columns: Columns) -> exp.Expr:
    """Own columns as fields, the others as in the query."""

    def change(found: exp.Expr) -> exp.Expr:
        if isinstance(found, exp.Column) and found.table:
            name = columns.get((found.table.lower(), found.name.lower()))
            if name is not None:
                return field_column(name, found)
        return found

    return copied(node).transform(change, copy=False)


def _having(made: _Select) -> None:
    having = made.query.args.get("having")
    if having is None:
        return
    if made.empty is not None:
        raise NoOperator("HAVING of an aggregate linked to the rows around it", having)
    for condition in conjuncts(having.this):
        subqueries.keep(made.scope, condition)


def _windows(made: _Select) -> None:
    """Window functions and QUALIFY. What QUALIFY requires of row numbers is a top-k, after which
    the numbers of the rows that are left are what they were."""
    query, scope = made.query, made.scope
    qualify = query.args.get("qualify")
    conditions = conjuncts(qualify.this) if qualify else []
    cut = next((one for one in conditions if first_rows.as_first(one)), None)
    first = first_rows.as_first(cut) if cut is not None else None
    shown = [*query.expressions, *([query.args["order"]] if query.args.get("order") else [])]
    others = [one for one in conditions if one is not cut or first is None or not first.exact]
    nodes = [window for part in (*shown, *others) for window in windows_in(part)]
    if nodes or conditions:
        if made.rest:
            raise NoOperator("a window linked to the rows around it by more than equalities", made.rest[0])
        if made.empty is not None:
            raise NoOperator("a window over an aggregate linked to the rows around it", query)
    after = [one for one in nodes if first is not None and first_rows.numbers(scope, one, first)]
    windows.build_windows(scope, [one for one in nodes if not any(one is other for other in after)], made.links)
    if first is not None:
        first_rows.keep_first(scope, first, after, made.links)
    for condition in others:
        subqueries.keep(scope, condition)


def _unnest(made: _Select) -> None:
    """unnest(…) among the columns."""
    scope = made.scope
    nodes = [n for part in made.query.expressions for n in inside(part) if isinstance(n, exp.Explode | exp.Unnest)]
    if not nodes:
        return
    texts = {text_of(scope.lower(node)): node for node in nodes}
    if len(texts) > 1 or made.links or made.rest:
        raise NoOperator("unnest of several lists", nodes[0])
    ((text, node),) = texts.items()
    items = node.this if isinstance(node, exp.Explode) else node.expressions[0]
    if isinstance(node, exp.Explode) and len([v for v in node.args.values() if v]) > 1:
        raise NoOperator("unnest with options", node)
    scope.relation, item, _ = lateral.unnest(
        scope.context, scope.relation, scope.expr(items), "unnest", [], None, False, node
    )
    scope.known[text] = item


def _columns(made: _Select, alias: str | None) -> QueryPiece:
    """ORDER BY, LIMIT, the columns, DISTINCT."""
    query, scope, context = made.query, made.scope, made.scope.context
    distinct = query.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    if made.empty is not None:  # one row for each row around it: they are different as they are
        distinct = on = None
    if made.rest and (distinct is not None or query.args.get("limit") or query.args.get("offset")):
        raise NoOperator("a subquery linked by more than equalities", made.rest[0])
    if made.empty is not None and (query.args.get("limit") or query.args.get("offset")):
        raise NoOperator("a limit on an aggregate linked to the rows around it", query)
    star = next((part for part in query.expressions if isinstance(part.unalias(), exp.Star | exp.Columns)), None)
    if star is not None:
        raise NoOperator("columns that only evaluation gives", star)
    shown = [subqueries.absorbed(scope, part.unalias()) for part in query.expressions]
    names = tuple(part.alias_or_name for part in query.expressions)
    by_name = dict(reversed([(name.lower(), node) for name, node in zip(names, shown, strict=True)]))
    wanted = order.named(query.args.get("order"), by_name, shown)
    for part in wanted.expressions:
        part.set("this", subqueries.absorbed(scope, part.this))
    if on is not None:
        keys = [order.named(exp.Order(expressions=[one]), by_name, shown).expressions[0].this for one in on.expressions]
        own = [*scope.exprs(keys), *(of_field(scope.relation.field(name)) for name in made.partition)]
        sorts = by_key(scope.relation, scope.sorts(wanted))
        scope.relation = TopK(scope.relation, tuple(dict.fromkeys(own)), sorts, 1)
    if distinct is None or on is not None:
        order.limited(scope, query, wanted, made.partition)
    made_of = scope.exprs(shown)
    prefix = None if alias is None else context.names.source(alias or "subquery")
    outputs: list[Definition] = []
    for name, expression in zip(names, made_of, strict=True):
        own_name = name if prefix is None else context.names.fresh(f"{prefix}.{name}")
        outputs.append((Field(own_name, expression.type, nullable(expression, scope.relation)), expression))
    empty = tuple(_empty(e, made) for e in made_of) if made.empty is not None else None
    fields = tuple(f.name for f, _ in outputs)
    if distinct is not None and on is None:
        return _distinct(made, outputs, fields, names, empty, wanted, alias)
    sorts, hidden = _reading_order(scope, wanted, outputs) if alias is None else ((), [])
    more = _passed(made, outputs)
    relation = project(scope.relation, [*outputs, *more, *hidden])
    return QueryPiece(relation, fields, names, _renamed(made, relation.passed), tuple(made.rest), empty, sorts)


def _passed(made: _Select, outputs: Sequence[Definition]) -> list[Definition]:
    """Links and the fields that the rest reads, passed on."""
    scope = made.scope
    shown = {e.field for _, e in outputs}
    rest = {c.name for condition in made.rest for c in condition.find_all(exp.Column) if not c.table}
    needed = dict.fromkeys([*(n for n in made.partition if n not in shown), *sorted(rest)])
    return [(scope.relation.field(name), of_field(scope.relation.field(name))) for name in needed]


def _renamed(made: _Select, passed: dict[str, str]) -> tuple[Link, ...]:
    return tuple(replace(link, inner=passed[link.inner]) for link in made.links)


def _empty(expression: Expr, made: _Select) -> str:
    """What an output is over nothing."""
    assert made.empty is not None
    plain = expression.field
    if plain is not None and plain in made.empty:
        return made.empty[plain]
    outer = {new: quoted(old) for new, old in made.around.fields.items()} if made.around else {}
    if not {*expression.fields} <= {*made.empty, *outer}:
        raise NoOperator("a value beside an aggregate linked to the rows around it", made.query)
    return f"CAST({replaced(expression.sql, {**made.empty, **outer})} AS {expression.type})"


def _distinct(
    made: _Select,
    outputs: list[Definition],
    fields: tuple[str, ...],
    names: tuple[str, ...],
    empty: tuple[str, ...] | None,
    wanted: exp.Order,
    alias: str | None,
) -> QueryPiece:
    scope = made.scope
    relation = project(scope.relation, [*outputs, *_passed(made, outputs)])
    links = _renamed(made, relation.passed)
    later = QueryScope(scope.context, Distinct(relation), scope.columns, dict(scope.known))
    known = {e.sql: f.name for f, e in reversed(outputs)}
    lowered = exp.Order(expressions=[])
    for part in wanted.expressions:
        text = text_of(scope.lower(part.this).unnest())
        made_part = copied(part)
        made_part.set("this", field_column(known[text]) if text in known else scope.lower(part.this))
        lowered.append("expressions", made_part)
    later.known = {}
    sorts = order.limited(later, made.query, lowered, [link.inner for link in links])
    return QueryPiece(later.relation, fields, names, links, (), empty, sorts if alias is None else ())


def _reading_order(
    scope: QueryScope, wanted: exp.Order, outputs: list[Definition]
) -> tuple[tuple[Sort, ...], list[Definition]]:
    """The order over output fields, with hidden ones for what is not shown."""
    known = {e.sql: f for f, e in reversed(outputs)}
    sorts: list[Sort] = []
    hidden: list[Definition] = []
    for sort in scope.sorts(wanted):
        found = known.get(sort.by.sql)
        if found is None:
            found = Field(scope.context.names.fresh("order"), sort.by.type, hidden=True)
            known[sort.by.sql] = found
            hidden.append((found, sort.by))
        sorts.append(replace(sort, by=of_field(found)))
    return tuple(sorts), hidden
