"""COLUMNS(…), stars with a pattern and the star of a struct, written out.

DuckDB says which columns such an expression stands for; each gets an expression
of its own.

::

    SELECT max(COLUMNS('^price')) FROM t          SELECT max(price) AS price, max(price2) AS price2 FROM t
    SELECT * NOT LIKE 'price%' FROM t             SELECT id AS id, address AS address FROM t
    SELECT address.* FROM t                       SELECT address.street AS street, address.city AS city FROM t
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.sql.dialects import to_sql
from everview.sql.expand import is_whole
from everview.sql.namespace import fold
from everview.sql.typer import Described


def column_sets(tree: exp.Expr, describe: Callable[[str], Described | None]) -> None:
    """Write them out in every SELECT below a node where DuckDB can be asked. Raises where others are left
    that say more than which columns are shown: ``WHERE COLUMNS(*) > 1`` holds of all columns together."""
    for select in reversed(list(tree.find_all(exp.Select))):
        parts = []
        for part in select.expressions:
            parts.extend(_written_out(part, select, describe) or [part])
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
    one: exp.Expr
    star = _star_with_pattern(part)
    if star is not None:
        one = part
    elif sets:
        one = sets[0]
        changed = any(star.args.get("replace") or star.args.get("rename") for star in one.find_all(exp.Star))
        if isinstance(part, exp.Alias) or changed or any(other != one for other in sets) or one.args.get("unpack"):
            return None
    elif isinstance(part, exp.Column) and part.is_star and fold(part.table) not in _sources(select):
        one = part
        if part.this.args.get("replace") or part.this.args.get("rename"):
            return None
    else:
        return None
    probe = exp.Select(expressions=[one.copy()], from_=_copy(select, "from_"))
    probe.set("joins", [join.copy() for join in select.args.get("joins") or ()])
    found = describe(to_sql(probe))
    if found is None or len({fold(name) for name in found.names}) != len(found.names):
        if star is not None:
            raise ValueError("columns by a pattern that cannot be told apart")
        return None
    if star is not None:
        table = star.args.get("table")
        columns = (exp.column(exp.to_identifier(name, quoted=True), table and table.copy()) for name in found.names)
        return [exp.alias_(column, column.name, quoted=True) for column in columns]
    return [exp.alias_(_one(part, one, name), name, quoted=True) for name in found.names]


_PATTERNS = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob, exp.RegexpLike, exp.Not, exp.Escape, exp.Paren)


def _star_with_pattern(part: exp.Expr) -> exp.Expr | None:
    """The star of ``* LIKE 'a%'`` and its like, which choose columns by their names."""
    found = part
    while isinstance(found, _PATTERNS):
        found = found.this
    return found if found is not part and not isinstance(part, exp.Columns) and found.is_star else None


def _one(part: exp.Expr, one: exp.Expr, name: str) -> exp.Expr:
    if part is one and isinstance(part, exp.Column):
        # table and db hold the struct's name: what follows it is the field.
        parts = [part.args[key].copy() for key in ("catalog", "db", "table") if part.args.get(key)]
        return exp.column(exp.to_identifier(name, quoted=True), *reversed(parts), copy=False)
    column = exp.column(name, quoted=True)
    copy = part.copy()
    if isinstance(copy, exp.Columns):
        return column
    for columns in list(copy.find_all(exp.Columns)):
        columns.replace(column.copy())
    return copy


def _sources(select: exp.Select) -> set[str]:
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


def _copy(select: exp.Select, key: str) -> exp.Expr | None:
    found = select.args.get(key)
    return found.copy() if isinstance(found, exp.Expr) else None
