"""Distribution: may a query be evaluated partition by partition?

A query distributes over a column of each of its inputs if evaluating it for each value
of that column alone, and putting the answers together, gives what it gives over everything.

The question is asked of a text over the tables ``in0``, ``in1``, … and one column of each. It is
answered from the inside out: every part of the query either keeps partitions apart or does not, and
of those that do we know which of their columns *carry* the value of the partition, in every row.

| part | keeps partitions apart if | carries |
|---|---|---|
| an input | always | its column |
| constants, a row's own lists | beside something else | nothing more |
| join | a carried column of the one side equals one of the other | those of sides that are never missing |
| GROUP BY | a carried column is among the group's, in all grouping sets | those shown |
| aggregate without GROUP BY | never: there is one row, even over nothing | |
| window function | PARTITION BY has a carried column | those shown |
| DISTINCT | a carried column is shown; DISTINCT ON: among those | those shown |
| UNION ALL | both sides do | what is carried at the same place on both sides |
| UNION, INTERSECT, EXCEPT | both sides carry at the same place | that |
| LIMIT, OFFSET, positional join, sample | never | |
| recursive query | the first part does, and the second under that assumption | what both carry |
| subquery in an expression | it reads only rows whose carried column equals one around it | |

Nulls are a partition like any other: no equality holds between them, and groups, distinct rows and
set operations take them for one value. A partition without rows gives no rows, by every line above,
so it is enough to look at partitions in which something changed.

``SELECT o.id, (SELECT max(i.price) FROM in1 AS i WHERE i.order = o.id LIMIT 1) FROM in0 AS o``
distributes over ``in0.id`` and ``in1.order``: what the subquery does with the rows of one order is its
own business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from everview.plan.expressions import conjuncts_of
from everview.plan.rules.carrying import CarriedColumns, NotApartError, Scope, certain, equates, links
from everview.sql.aggregates import aggregate_names, aggregates, may_hold_outer_aggregates


def distributed(
    query: exp.Expr, columns: Mapping[str, Sequence[str]], split: Mapping[str, str]
) -> frozenset[str] | None:
    """The columns in which a query over inputs with these columns shows the value of the partition, in
    lower case, if it distributes over one column of each; None if it does not."""
    inputs = {
        name: CarriedColumns(tuple(found.lower() for found in columns[name]), frozenset([split[name].lower()]))
        for name in columns
    }
    try:
        rows = _rows(query, inputs)
    except NotApartError:
        return None
    return None if rows.constant else rows.carried


def _rows(query: exp.Expr, named: Mapping[str, CarriedColumns]) -> CarriedColumns:
    """What a query makes of what is named around it."""
    named = _with(query, named)
    if any(query.args.get(part) for part in ("limit", "offset", "sample", "pivots", "laterals")):
        raise NotApartError("a part of all rows together")
    if isinstance(query, exp.Subquery):
        return _rows(query.this, named)
    if isinstance(query, exp.SetOperation):
        return _set(query, named)
    if isinstance(query, exp.Select):
        return _select(query, named)
    if isinstance(query, exp.Values):
        return CarriedColumns(None, constant=True)
    raise NotApartError(type(query).__name__)


def _with(query: exp.Expr, named: Mapping[str, CarriedColumns]) -> Mapping[str, CarriedColumns]:
    clause = query.args.get("with_")
    if clause is None:
        return named
    known = dict(named)
    for part in clause.expressions:
        name = part.alias.lower()
        names = [column.name.lower() for column in part.args["alias"].columns]
        if part.args.get("key_expressions"):
            raise NotApartError("a recursive query with a key")
        if clause.args.get("recursive") and _reads(part.this, {name}):
            known[name] = _recursive(part.this, name, names, known)
        else:
            known[name] = _rows(part.this, known).called(names)
    return known


def _recursive(query: exp.Expr, name: str, names: Sequence[str], named: Mapping[str, CarriedColumns]) -> CarriedColumns:
    """Assume what the first part carries, and take back what the second does not bear out."""
    if not isinstance(query, exp.Union) or _reads(query.this, {name}):
        raise NotApartError("a recursive query of another form")
    assumed = _rows(query.this, named).called(names)
    while True:
        found = _rows(query, {**named, name: assumed}).called(names)
        if found.carried >= assumed.carried:
            return assumed
        assumed = replace(assumed, carried=found.carried & assumed.carried)


def _reads(query: exp.Expr, names: set[str]) -> bool:
    return any(table.name.lower() in names for table in query.find_all(exp.Table))


# ---------------------------------------------------------------- set operations


def _set(query: exp.SetOperation, named: Mapping[str, CarriedColumns]) -> CarriedColumns:
    if query.args.get("by_name") or query.args.get("side") or query.args.get("on"):
        raise NotApartError("columns matched by name")
    left, right = _rows(query.left, named), _rows(query.right, named)
    if left.constant and right.constant:
        return left
    if left.constant or right.constant or left.columns is None or right.columns is None:
        raise NotApartError("constants beside rows")
    sides = zip(left.columns, right.columns, strict=False)
    both = [n for n, (one, other) in enumerate(sides) if one in left.carried and other in right.carried]
    keeps_all = isinstance(query, exp.Union) and not query.args.get("distinct")
    if not both and not keeps_all:
        raise NotApartError("equal rows of different partitions")
    return CarriedColumns(left.columns, certain(left.columns, both))


# ---------------------------------------------------------------- select


def _select(query: exp.Select, named: Mapping[str, CarriedColumns], around: Scope | None = None) -> CarriedColumns:
    """A SELECT; one that is linked to the rows ``around`` it sees rows of one partition only."""
    scope = _from(query, named)
    where = query.args.get("where")
    conditions = list(conjuncts_of(where.this)) if where is not None else []
    linked = around is not None and any(links(part, scope, around) for part in conditions)
    for found in _subqueries(query):
        _check_subquery(found, scope, named, conditions)
    outputs = list(_outputs(query, scope))
    columns = tuple(name for name, _ in outputs)
    rows = CarriedColumns(
        columns, certain(columns, [n for n, (_, carried) in enumerate(outputs) if carried]), scope.constant
    )
    if scope.constant or linked:
        return rows
    if around is not None:
        raise NotApartError("a subquery that reads other partitions")
    _check_groups(query, scope)
    _check_windows(query, scope)
    distinct = query.args.get("distinct")
    if distinct is not None:
        on = distinct.args.get("on")
        if not (any(map(scope.carries, on.expressions)) if on is not None else rows.carried):
            raise NotApartError("equal rows of different partitions")
    return rows


def _outputs(query: exp.Select, scope: Scope) -> Iterator[tuple[str, bool]]:
    """Each column that is shown, and whether it is carried."""
    for part in query.expressions:
        bare = part.unalias()
        if isinstance(bare, exp.Star) or (isinstance(bare, exp.Column) and isinstance(bare.this, exp.Star)):
            star = bare if isinstance(bare, exp.Star) else bare.this
            only = bare.table.lower() if isinstance(bare, exp.Column) else ""
            if any(star.args.get(word) for word in ("except_", "replace", "rename", "except", "ilike")):
                raise NotApartError("a star with exceptions")
            if scope.merges:
                raise NotApartError("a star over merged columns")
            for alias, rows in scope.sources.items():
                if only in ("", alias):
                    if rows.columns is None:
                        raise NotApartError("columns that are unknown")
                    yield from ((name, (alias, name) in scope.carried) for name in rows.columns)
        else:
            yield part.alias_or_name.lower(), scope.carries(bare)


def _check_groups(query: exp.Select, scope: Scope) -> None:
    group = query.args.get("group")
    if group is None:
        places = (query.args.get(part) for part in ("having", "qualify", "order"))
        computed = [*query.expressions, *(place for place in places if place is not None)]
        if query.args.get("having") is not None or any(map(_aggregates, computed)):
            raise NotApartError("one group of all rows")
        return
    shown = [found.unalias() for found in query.expressions]
    if group.args.get("all"):
        keys = [found for found in shown if not _aggregates(found)]
    else:
        keys = [_meant(found, query, scope) for found in group.expressions]
    if not any(map(scope.carries, keys)):
        raise NotApartError("groups of rows of different partitions")


def _aggregates(tree: exp.Expr) -> bool:
    """Whether an aggregate may be computed in it. sqlglot has classes for some that are none of its own
    aggregates; one over a window counts, unless it is sure to be a window function."""
    if aggregates(tree) or may_hold_outer_aggregates(tree):
        return True
    calls = (node for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)) if isinstance(node, exp.Func))
    return any(
        not isinstance(call, exp.AggFunc | exp.Anonymous)
        and any(name.lower() in aggregate_names() for name in call.sql_names())
        for call in calls
    )


def _meant(key: exp.Expr, query: exp.Select, scope: Scope) -> exp.Expr:
    """A part of GROUP BY, which may name a column of the result by its place or alias."""
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(query.expressions):
        shown: exp.Expr = query.expressions[int(key.name) - 1]
        return shown.unalias()
    if isinstance(key, exp.Column) and not key.table and not scope.carries(key):
        known = any(rows.columns is None or key.name.lower() in rows.columns for rows in scope.sources.values())
        if not known:
            return next((found.unalias() for found in query.expressions if found.alias == key.name), key)
    return key


def _check_windows(query: exp.Select, scope: Scope) -> None:
    if query.args.get("windows"):
        raise NotApartError("a window with a name")
    for window in query.find_all(exp.Window):
        if window.find_ancestor(exp.Query) is query and not any(
            map(scope.carries, window.args.get("partition_by") or ())
        ):
            raise NotApartError("a window over rows of different partitions")


# ---------------------------------------------------------------- from


def _from(query: exp.Select, named: Mapping[str, CarriedColumns]) -> Scope:
    scope = Scope({}, set(), True)
    first = query.args.get("from_")
    if first is None:
        return scope
    _enter(scope, first.this, named)
    joins = [*(first.this.args.get("joins") or ()), *(query.args.get("joins") or ())]
    where = query.args.get("where")
    asked = list(conjuncts_of(where.this)) if where is not None else []
    for join in joins:
        _join(scope, join, asked, named)
    return scope


def _source(tree: exp.Expr, named: Mapping[str, CarriedColumns]) -> tuple[str, CarriedColumns]:
    alias = tree.args.get("alias")
    names = [column.name.lower() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    own = tree.alias.lower()
    if tree.args.get("pivots") or tree.args.get("sample"):
        raise NotApartError("a pivot or a sample")
    if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
        rows = named.get(tree.name.lower())
        if rows is None:
            raise NotApartError(f"the table {tree.name}")
        return own or tree.name.lower(), rows.called(names)
    if isinstance(tree, exp.Subquery):
        return own, _rows(tree, named).called(names)
    if (
        isinstance(tree, exp.Table | exp.Unnest | exp.Lateral | exp.Values)
        and tree.find(exp.Select, exp.SetOperation) is None
    ):
        return own, CarriedColumns(None, constant=True).called(names)
    raise NotApartError(type(tree).__name__)


def _enter(scope: Scope, tree: exp.Expr, named: Mapping[str, CarriedColumns]) -> tuple[str, CarriedColumns]:
    alias, rows = _source(tree, named)
    if isinstance(tree, exp.Subquery) and tree.args.get("joins"):
        raise NotApartError("joined tables with an alias")
    if not alias or alias in scope.sources:
        alias = f"{len(scope.sources)} {alias}"  # no query can name it
    scope.sources[alias] = rows
    scope.carried |= {(alias, name) for name in rows.carried}
    scope.constant = scope.constant and rows.constant
    return alias, rows


_PARTS = frozenset({"this", "on", "using", "side", "kind", "method"})


def _join(scope: Scope, join: exp.Join, asked: Sequence[exp.Expr], named: Mapping[str, CarriedColumns]) -> None:
    side, kind = join.side.upper(), join.kind.upper()
    if any(value for part, value in join.args.items() if part not in _PARTS):
        raise NotApartError("a join of another form")
    if join.method.upper() not in ("", "ASOF"):
        raise NotApartError(f"a {join.method} join")
    before, was_constant = set(scope.carried), scope.constant
    alias, rows = _enter(scope, join.this, named)
    after = scope.carried - before
    on = join.args.get("on")
    using = [found.name.lower() for found in join.args.get("using") or ()]
    scope.merges = scope.merges or bool(using)
    if on is not None and on.find(exp.Query) is not None:
        raise NotApartError("a subquery in a join condition")
    if kind in ("SEMI", "ANTI"):
        scope.sources.pop(alias)
        scope.carried = before
    if rows.constant:
        if side in ("RIGHT", "FULL") and not was_constant:
            raise NotApartError("constants without a match")
        return
    if was_constant:
        if side in ("LEFT", "FULL") or kind in ("SEMI", "ANTI"):
            raise NotApartError("constants without a match")
        return
    conditions = [
        *(conjuncts_of(on) if on is not None else ()),
        *(asked if not side and kind in ("", "INNER", "CROSS") else ()),
    ]
    one = Scope({**scope.sources, alias: rows}, before, False)
    other = Scope(one.sources, after, False)
    merged = [name for name in using if (alias, name) in after and any(found == name for _, found in before)]
    if not merged and not any(equates(part, one, other) for part in conditions):
        raise NotApartError("a join of rows of different partitions")
    if side == "LEFT":
        scope.carried = before
    elif side == "RIGHT":
        scope.carried = after
    elif side == "FULL":
        scope.carried = {("", name) for name in merged}
    elif kind not in ("SEMI", "ANTI"):
        scope.carried |= {("", name) for name in merged}


# ---------------------------------------------------------------- subqueries


def _subqueries(query: exp.Select) -> Iterator[exp.Expr]:
    """The subqueries in the expressions of a SELECT, not those in its FROM or inside of others."""
    places = ("where", "having", "qualify", "order", "group", "distinct")
    for tree in [*query.expressions, *(found for place in places if (found := query.args.get(place)) is not None)]:
        for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)):
            if isinstance(node, exp.Query):
                yield node


def _check_subquery(
    found: exp.Expr, scope: Scope, named: Mapping[str, CarriedColumns], conditions: Sequence[exp.Expr]
) -> None:
    if not _reads(found, {name for name, rows in named.items() if not rows.constant}):
        return
    query = found.unnest() if isinstance(found, exp.Subquery) else found
    member = found.parent
    if isinstance(member, exp.In) and any(member is part for part in conditions) and scope.carries(member.this):
        rows = _rows(query, named)
        if rows.columns is not None and len(rows.columns) == 1 and rows.columns[0] in rows.carried:
            return
    if not isinstance(query, exp.Select) or query.args.get("with_"):
        raise NotApartError("a subquery of this form")
    _select(query, named, scope)
