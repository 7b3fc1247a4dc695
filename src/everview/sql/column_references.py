"""Columns that a query names by a number, by a pattern or by a place, named one by one.

DuckDB is asked which columns there are, and each reference becomes the plain columns it stands for.

::

    SELECT #2 FROM people                         SELECT name FROM people
    SELECT a FROM t UNION ALL BY NAME SELECT b …  SELECT side.a, NULL AS b FROM (…) AS side UNION ALL SELECT …
    SELECT max(COLUMNS('^price')) FROM t          SELECT max(price) AS price, max(price2) AS price2 FROM t
    SELECT * NOT LIKE 'price%' FROM t             SELECT id AS id, address AS address FROM t
    SELECT address.* FROM t                       SELECT address.street AS street, address.city AS city FROM t
    (SELECT a, b FROM t ORDER BY b) AS q(x, y)    (SELECT a, b FROM t ORDER BY 2) AS q(x, y)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from everview.sql.dialects import to_sql
from everview.sql.expansion import is_whole
from everview.sql.namespace import fold
from everview.sql.resolution import Resolution
from everview.sql.typer import Described

# ------------------------------------------------------------------ by number


def name_positional_columns(query: Resolution) -> None:
    """``#1`` as the column of that number. A number whose column shares its name with another stays, and DuckDB
    evaluates the query as it stands."""
    for number in list(query.tree.find_all(exp.PositionalColumn)):
        select = number.parent_select
        if not isinstance(select, exp.Select):
            continue
        every = exp.Select(expressions=[exp.Star()])
        for key in ("from_", "joins"):
            every.set(key, select.copy().args.get(key))
        described = query.describe(to_sql(every))
        names = [fold(name) for name in described.names] if described else []
        at = int(number.name) - 1
        if 0 <= at < len(names) and names.count(names[at]) == 1:
            number.replace(exp.column(exp.to_identifier(names[at], quoted=True)))


# ------------------------------------------------------------------ by the names of another query


def unite_by_position(query: Resolution) -> None:
    """UNION BY NAME as a union by position, where DuckDB can describe both sides."""
    for union in reversed(list(query.tree.find_all(exp.SetOperation))):
        if not union.args.get("by_name"):
            continue
        sides = [union.this, union.expression]
        described = [query.describe(to_sql(side)) for side in sides]
        left, right = described
        if left is None or right is None:
            continue
        there = {fold(name) for name in left.names}
        names = [*left.names, *(name for name in right.names if fold(name) not in there)]
        for key, side, own in (("this", sides[0], left.names), ("expression", sides[1], right.names)):
            union.set(key, _by_position(side, own, names))
        union.set("by_name", None)


def _by_position(side: exp.Expr, own: Sequence[str], names: Sequence[str]) -> exp.Select:
    there = {fold(name) for name in own}
    columns = [
        exp.alias_(
            exp.column(name, table="side", quoted=True) if fold(name) in there else exp.null(), name, quoted=True
        )
        for name in names
    ]
    inner = side if isinstance(side, exp.Subquery) and not side.alias else exp.Subquery(this=side.copy())
    inner = inner.copy()
    inner.set("alias", exp.TableAlias(this=exp.to_identifier("side")))
    return exp.select(*columns).from_(inner)


# ------------------------------------------------------------------ by a pattern


def write_out_column_sets(query: Resolution) -> None:
    """COLUMNS(…), stars with a pattern and the star of a struct: each column that such an expression stands for gets
    an expression of its own. Raises where others are left that are more than a list of columns to show:
    ``WHERE COLUMNS(*) > 1`` holds of all columns together."""
    for select in reversed(list(query.tree.find_all(exp.Select))):
        parts = []
        for part in select.expressions:
            parts.extend(_written_out(part, select, query.describe) or [part])
        select.set("expressions", parts)
        if not is_whole(select):
            _refuse_conditions(select)


def _refuse_conditions(select: exp.Select) -> None:
    for key, clause in select.args.items():
        if key == "expressions":
            continue
        for part in clause if isinstance(clause, list) else [clause]:
            if isinstance(part, exp.Expr) and any(
                isinstance(node, exp.Columns) for node in part.walk(prune=lambda node: isinstance(node, exp.Query))
            ):
                raise ValueError("columns beside those that are shown")


def _written_out(
    part: exp.Expr, select: exp.Select, describe: Callable[[str], Described | None]
) -> list[exp.Expr] | None:
    sets = list(part.find_all(exp.Columns))
    columns: exp.Expr
    star = _star_with_pattern(part)
    if star is not None:
        columns = part
    elif sets:
        columns = sets[0]
        changed = any(star.args.get("replace") or star.args.get("rename") for star in columns.find_all(exp.Star))
        several = any(other != columns for other in sets)
        if isinstance(part, exp.Alias) or changed or several or columns.args.get("unpack"):
            return None
    elif isinstance(part, exp.Column) and part.is_star and fold(part.table) not in _sources_around(select):
        columns = part
        if part.this.args.get("replace") or part.this.args.get("rename"):
            return None
    else:
        return None
    probe = exp.Select(expressions=[columns.copy()], from_=_copied_clause(select, "from_"))
    probe.set("joins", [join.copy() for join in select.args.get("joins") or ()])
    described = describe(to_sql(probe))
    if described is None or len({fold(name) for name in described.names}) != len(described.names):
        if star is not None:
            raise ValueError("two columns that a pattern chooses have one name")
        return None
    if star is not None:
        table = star.args.get("table")
        chosen = (exp.column(exp.to_identifier(name, quoted=True), table and table.copy()) for name in described.names)
        return [exp.alias_(column, column.name, quoted=True) for column in chosen]
    return [exp.alias_(_for_column(part, columns, name), name, quoted=True) for name in described.names]


_PATTERNS = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob, exp.RegexpLike, exp.Not, exp.Escape, exp.Paren)


def _star_with_pattern(part: exp.Expr) -> exp.Expr | None:
    """The star of ``* LIKE 'a%'`` and its like, which choose columns by their names."""
    star = part
    while isinstance(star, _PATTERNS):
        star = star.this
    return star if star is not part and not isinstance(part, exp.Columns) and star.is_star else None


def _for_column(part: exp.Expr, columns: exp.Expr, name: str) -> exp.Expr:
    """The expression with one of the columns in the place of all."""
    if part is columns and isinstance(part, exp.Column):
        # table and db hold the struct's name: what follows it is the field.
        parts = [part.args[key].copy() for key in ("catalog", "db", "table") if part.args.get(key)]
        return exp.column(exp.to_identifier(name, quoted=True), *reversed(parts), copy=False)
    column = exp.column(name, quoted=True)
    copy = part.copy()
    if isinstance(copy, exp.Columns):
        return column
    for each in list(copy.find_all(exp.Columns)):
        each.replace(column.copy())
    return copy


def _sources_around(select: exp.Select) -> set[str]:
    """The names of everything that the SELECT, or one around it, reads from."""
    names: set[str] = set()
    around: exp.Expr | None = select
    while around is not None:
        if isinstance(around, exp.Select):
            for source in (around.args.get("from_"), *(around.args.get("joins") or ())):
                if source is not None:
                    names.add(fold(source.this.alias_or_name))
                    names |= {fold(table.alias_or_name) for table in source.find_all(exp.Table)}
        around = around.parent
    return names


def _copied_clause(select: exp.Select, key: str) -> exp.Expr | None:
    clause = select.args.get(key)
    return clause.copy() if isinstance(clause, exp.Expr) else None


# ------------------------------------------------------------------ by a name that changes


def order_by_place(query: Resolution) -> None:
    """ORDER BY of a subquery whose alias renames its columns, by their places.

    Sqlglot gives the columns of a subquery the names that its alias lists, and leaves the old ones in its ORDER BY.
    Raises where a name stands for several columns.
    """
    for subquery in query.tree.find_all(exp.Subquery):
        alias = subquery.args.get("alias")
        if not isinstance(alias, exp.TableAlias) or not alias.columns or is_whole(subquery):
            continue
        for renamed in _renamed_queries(subquery.this):
            if renamed.args.get("order") is not None:
                _by_place(renamed, query.describe)


def _renamed_queries(query: exp.Expr) -> list[exp.Expr]:
    """The queries whose columns are renamed with those of a query: itself, and the sides of a set operation."""
    if isinstance(query, exp.SetOperation):
        return [query, *_renamed_queries(query.left), *_renamed_queries(query.right)]
    return [query, *_renamed_queries(query.this)] if isinstance(query, exp.Subquery) else [query]


def _by_place(query: exp.Expr, describe: Callable[[str], Described | None]) -> None:
    parts = [(part, _sort_key(part)) for part in query.args["order"].expressions]
    waiting = [part for part, key in parts if isinstance(key, exp.Column) and not key.table]
    described = describe(to_sql(query)) if waiting else None
    if described is None:
        return
    names = [fold(name) for name in described.names]
    for part in waiting:
        name = fold(_sort_key(part).name)
        if names.count(name) > 1:
            raise ValueError(f"{name} is the name of several columns")
        if name in names:
            place = exp.Literal.number(names.index(name) + 1)
            part.set("this", place) if isinstance(part, exp.Ordered) else part.replace(place)


def _sort_key(part: exp.Expr) -> exp.Expr:
    key: exp.Expr = part.this if isinstance(part, exp.Ordered) else part
    return key
