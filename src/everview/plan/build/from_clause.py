"""FROM: tables, views, subqueries, lists and rows, joined as in the query.

A FROM is a comma-separated row of chains of joins; inner joins pile up until a
join of another kind, or something that reads the rows before it, needs one relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from everview.change.schema import ROW_ID
from everview.change.types import BIGINT, UUID, VARCHAR, Kind, Type
from everview.plan.build import join_clauses, lateral, queries, reevaluate, subqueries
from everview.plan.build.context import BuildContext, NoOperator, text_of
from everview.plan.build.query_scopes import (
    Columns,
    QueryScope,
    conjuncts,
    free_columns,
    has_query,
    is_local,
    lowered,
    with_implied,
)
from everview.plan.expressions import Field
from everview.plan.relations import JoinKind, QueryRows, Relation, Scan
from everview.sql.expansion import WHOLE

ROW = ROW_ID
"""The hidden column that numbers equal rows where they may repeat."""

_KINDS = {
    ("LEFT", ""): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("", "SEMI"): JoinKind.SEMI,
    ("", "ANTI"): JoinKind.ANTI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
}

_INNER = {("", ""): JoinKind.INNER, ("", "INNER"): JoinKind.INNER}


@dataclass
class Sources:
    """What a FROM has come to: parts to be joined, and the conditions that are still open."""

    context: BuildContext
    columns: Columns = field(default_factory=dict)
    parts: list[Relation] = field(default_factory=list)
    chain: int = 0
    """Where the parts after the last comma begin: what a join that is not inner joins."""
    crossed: bool = False
    """Whether something after a comma has read what is before it, so that all is one chain."""
    open: list[exp.Expr] = field(default_factory=list)
    """Conditions of inner joins and WHERE over fields, without subqueries."""
    later: list[exp.Expr] = field(default_factory=list)
    """Conditions with subqueries or columns of outer queries, as in the query."""

    places: dict[str, exp.Expr] = field(default_factory=dict)
    """What in the query each field comes from."""

    def add(self, source: exp.Expr) -> Relation:
        relation, columns = build_source(self.context, source)
        self.columns.update(columns)
        self.places.update(dict.fromkeys(relation.by_name, source))
        return relation

    def hold(self, conditions: list[exp.Expr]) -> None:
        """Sort conditions into those that can be lowered now and the others."""
        for condition in with_implied(conditions):
            if has_query(condition) or not is_local(condition, self.columns):
                self.later.append(condition)
            else:
                self.open.append(lowered(condition, self.columns))

    def before_chain(self) -> Columns:
        """The columns of the parts before the last comma."""
        fields = {name for part in self.parts[: self.chain] for name in part.by_name}
        return {place: name for place, name in self.columns.items() if name in fields}

    def together(self, start: int, where: list[exp.Expr]) -> Relation:
        """The parts from one on as one relation, joined on what is open and on WHERE."""
        relation = join_clauses.combine(self.context, self.parts[start:], merged := [*self.open, *where], self.places)
        own = [c for c in merged if any(c is one for one in self.open)]
        ready = [c for c in own if join_clauses.fields_in(c) <= relation.by_name.keys()]
        self.open = [c for c in own if not any(c is one for one in ready)]
        where[:] = [c for c in where if any(c is one for one in merged)]
        del self.parts[start:]
        return join_clauses.filtered(self.context, relation, ready)


def from_clause(context: BuildContext, query: exp.Expr) -> tuple[Relation, Columns, list[exp.Expr]]:
    """The relation of a FROM and WHERE, its columns, and the conditions that are left: those with
    subqueries and those that read outer queries."""
    found = Sources(context)
    start = query.args.get("from_")
    where = query.args.get("where")
    conditions = conjuncts(where.this if where else None)
    if start is None:
        found.parts.append(one_row(context))
    else:
        found.parts.append(found.add(start.this))
        for join in start.this.args.get("joins") or ():
            _join(found, join, [])
        for join in [*(query.args.get("joins") or ()), *(exp.Join(this=x) for x in query.args.get("laterals") or ())]:
            if _is_comma(join) and not lateral.reads_others(join.this, found.columns):
                found.chain, found.crossed = len(found.parts), False
            _join(found, join, conditions)
    found.hold(conditions)
    relation = found.together(0, [])
    return join_clauses.filtered(context, relation, found.open), found.columns, found.later


def _is_comma(join: exp.Join) -> bool:
    return not (join.side or join.kind or join.method or join.args.get("on"))


_PARTS = frozenset({"this", "on", "using", "side", "kind", "method"})
"""What a join consists of, as far as operators go."""


def _join(found: Sources, join: exp.Join, where: list[exp.Expr]) -> None:
    more = next((part for part, value in join.args.items() if value and part not in _PARTS), None)
    if more is not None:
        raise NoOperator(f"a {more.replace('_', ' ').strip()} join", join)
    side, method = join.side.upper(), join.method.upper()
    kind = join.kind.upper().replace("OUTER", "")
    on = conjuncts(join.args.get("on"))
    if join.args.get("using"):
        raise NoOperator("a join with USING that could not be expanded", join)
    if lateral.reads_others(join.this, found.columns):
        if _is_comma(join) or lateral.reads_others(join.this, found.before_chain()):
            found.chain, found.crossed = 0, True
        left = found.together(found.chain, _early(found, where))
        relation, columns = lateral.joined(found.context, left, found.columns, join.this, side == "LEFT")
        found.columns.update(columns)
        found.parts.append(relation)
        if side == "LEFT" and on:
            raise NoOperator("a condition on a lateral left join", join)
        found.hold(on)
        return
    if method == "ASOF" and (side, kind) in _KINDS | _INNER:
        how = (_KINDS | _INNER)[side, kind]
        early = [] if how in (JoinKind.RIGHT, JoinKind.FULL) else _early(found, where)
        if found.crossed and how in (JoinKind.RIGHT, JoinKind.FULL):
            raise NoOperator("an outer join of what reads the rows before a comma", join)
        left, right = found.together(found.chain, early), found.add(join.this)
        found.parts.append(join_clauses.as_of(found.context, how, left, right, _lowered(on, found), join))
    elif (side, kind) in _KINDS and not method:
        how = _KINDS[side, kind]
        if found.crossed and how in (JoinKind.RIGHT, JoinKind.FULL):
            raise NoOperator("an outer join of what reads the rows before a comma", join)
        early = [] if how in (JoinKind.RIGHT, JoinKind.FULL) else _early(found, where)
        left, right = found.together(found.chain, early), found.add(join.this)
        if how not in (JoinKind.RIGHT, JoinKind.FULL):
            right, on = _asked_before(found, join, right, on)
        found.parts.append(join_clauses.join_on(found.context, how, left, right, _lowered(on, found), join))
    elif kind in ("", "INNER", "CROSS") and not side and not method:
        found.parts.append(found.add(join.this))
        for more in join.this.args.get("joins") or ():
            _join(found, more, where)
        found.hold(on)
    else:
        raise NoOperator(f"a {' '.join(word for word in (method, side, kind) if word)} join".lower(), join)


def _asked_before(
    found: Sources, join: exp.Join, right: Relation, on: list[exp.Expr]
) -> tuple[Relation, list[exp.Expr]]:
    """Conditions with subqueries that concern the right side alone, asked of it before it is joined."""
    alias = join.this.alias_or_name.lower()
    own = {place: name for place, name in found.columns.items() if place[0] == alias}
    scope = QueryScope(found.context, right, own)
    kept = []
    for condition in on:
        if has_query(condition) and is_local(condition, own):
            subqueries.keep(scope, condition)
        else:
            kept.append(condition)
    return scope.relation, kept


def _lowered(on: list[exp.Expr], found: Sources) -> list[exp.Expr]:
    return [lowered(condition, found.columns) for condition in with_implied(on)]


def _early(found: Sources, where: list[exp.Expr]) -> list[exp.Expr]:
    """What WHERE requires of the parts so far, by way of equalities: it may be used before a join
    that keeps the rows of its left side apart. It stays in WHERE as well, where it is harmless."""
    usable = []
    for condition in where:
        if (
            isinstance(condition, exp.EQ | exp.NullSafeEQ)
            and not has_query(condition)
            and is_local(condition, found.columns)
        ):
            usable.append(lowered(condition, found.columns))
    return usable


def one_row(context: BuildContext) -> QueryRows:
    """What a SELECT without FROM selects from."""
    return QueryRows(
        "SELECT true AS there", (Field(context.names.fresh("there"), Type(Kind.BOOLEAN), nullable=False, hidden=True),)
    )


def build_source(context: BuildContext, source: exp.Expr) -> tuple[Relation, Columns]:
    """One item of a FROM that reads nothing of the others."""
    if source.meta.get(WHOLE) or source.args.get("pivots"):
        return _whole(context, source)
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        return _table(context, source)
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
        if source.alias:
            raise NoOperator("joined tables with an alias", source)
        inner = exp.Select().from_(source.this.copy())
        relation, columns, later = from_clause(context, inner)
        if later:
            raise NoOperator("a subquery in a join condition", source)
        return relation, columns
    if isinstance(source, exp.Lateral):
        return build_source(context, source.this) if not source.alias else _renamed_lateral(context, source)
    if isinstance(source, exp.Subquery):
        piece = queries.build_query(context, source.this, source.alias)
        if piece.links or piece.rest:
            raise NoOperator("a subquery that reads the rows around it", source)
        names = _alias_columns(source, piece.names)
        return piece.relation, {
            (source.alias.lower(), n.lower()): f for n, f in reversed(list(zip(names, piece.outputs, strict=True)))
        }
    if free_columns(source):
        raise NoOperator("a table function over rows", source)
    if has_query(source):
        raise NoOperator("a table function over a query", source)
    return rows(context, source)


def _whole(context: BuildContext, source: exp.Expr) -> tuple[Relation, Columns]:
    """A source that DuckDB evaluates as it stands."""
    if free_columns(source):
        raise NoOperator("a query that reads the rows around it", source)
    recursive = any(with_.args.get("recursive") for with_ in source.find_all(exp.With))
    pivot = source.find(exp.Pivot)
    construct = "a recursive query" if recursive else "a pivot" if pivot else "a query of this form"
    query = exp.select("*").from_(source.copy())
    piece = reevaluate.whole(context, query, source.alias, NoOperator(construct, pivot or source))
    return piece.relation, _columns(source.alias, piece.names, piece.outputs)


def _columns(alias: str, names: Sequence[str], fields: Sequence[str]) -> Columns:
    """Where two columns have one name, the first is meant."""
    return {(alias.lower(), n.lower()): f for n, f in reversed(list(zip(names, fields, strict=True)))}


def _renamed_lateral(context: BuildContext, source: exp.Lateral) -> tuple[Relation, Columns]:
    inner = source.this.copy()
    inner.set("alias", source.args["alias"].copy())
    return build_source(context, inner)


def _alias_columns(source: exp.Expr, names: tuple[str, ...]) -> list[str]:
    """The names that the columns have outside: AS t (a, b) renames the first ones."""
    alias = source.args.get("alias")
    given = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return [*given, *names[len(given) :]]


def _table(context: BuildContext, source: exp.Table) -> tuple[Relation, Columns]:
    name = source.name.lower()
    alias = source.alias_or_name
    if name in context.around:
        around = context.around[name]
        return around.relation, {(name, field.lower()): field for field in around.fields}
    if name in context.named and not source.db:
        piece = queries.build_query(context, context.named[name].copy(), alias)
        names = _alias_columns(source, piece.names)
        return piece.relation, {(alias.lower(), n.lower()): f for n, f in zip(names, piece.outputs, strict=True)}
    relation = scan(context, source)
    shown = relation.shown
    names = _alias_columns(source, tuple(c.name for c in relation.columns if not c.hidden))
    return relation, {(alias.lower(), n.lower()): field.name for n, field in zip(names, shown, strict=True)}


def scan(context: BuildContext, source: exp.Table) -> Scan:
    """A base table or view under a name of its own."""
    found = context.sources.get(source.name.lower())
    if found is None:
        raise NoOperator(f"the table {source.name}", source)
    columns = [Field(column.name, column.type, column.nullable) for column in found.columns]
    if found.bag:
        # A table's rows have ids of their own; of a view it is the text of its row key, whatever that is.
        columns.append(Field(ROW, UUID if found.kind == "table" else VARCHAR, nullable=False, hidden=True))
    alias = context.names.source(source.alias_or_name, [column.name for column in columns])
    return Scan(found.name, alias, tuple(columns), (ROW,) if found.bag else found.key)


def rows(context: BuildContext, source: exp.Expr) -> tuple[Relation, Columns]:
    """Rows that stand in the query itself."""
    bare = source.copy()
    alias = source.alias_or_name
    bare.set("alias", None)
    query = f"SELECT * FROM {text_of(bare)}"
    described = context.described(query, {})
    names = _alias_columns(source, tuple(name for name, _ in described))
    prefix = context.names.source(alias or "rows")
    fields = tuple(
        Field(context.names.fresh(f"{prefix}.{n}"), kind) for n, (_, kind) in zip(names, described, strict=True)
    )
    relation = QueryRows(
        query, fields, Field(context.names.fresh(f"{prefix}.row"), BIGINT, nullable=False, hidden=True)
    )
    return relation, {(alias.lower(), n.lower()): f.name for n, f in zip(names, fields, strict=True)}
