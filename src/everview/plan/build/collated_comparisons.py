"""Collations: text that is compared otherwise than by its bytes.

A COLLATE matters where text is compared, keys of state compare bytes, so it ends in a
comparison that DuckDB evaluates or in a key that is equal where the texts are, or else the whole
query is evaluated again.

DuckDB hands a collation on with the value: of ``SELECT n FROM (SELECT name COLLATE NOCASE AS n FROM
people) GROUP BY n`` the groups are those of NOCASE. A field of a relation has a type and no
collation, so what must not happen is that a collated value becomes a field that is compared later::

    WHERE name COLLATE NOCASE = 'ann'              ends in the comparison
    a JOIN b ON a.name COLLATE NOCASE = b.name     LOWER(a.name) = LOWER(b.name)
    ORDER BY name COLLATE NOCASE LIMIT 3           by LOWER(name)
    OVER (PARTITION BY name COLLATE NOCASE)        by LOWER(name)
    SELECT max(name COLLATE NOCASE) FROM a         shown, and compared no more
    GROUP BY name COLLATE NOCASE, DISTINCT, …      escapes

What escapes is evaluated as DuckDB does it: of texts that are equal it shows one, whichever stands
first among the rows in the order of their keys.
"""

from __future__ import annotations

from sqlglot import exp

from everview.plan.build.function_calls import is_aggregate


def escaping(query: exp.Expr) -> exp.Expr | None:
    """The first COLLATE of a query whose value may be compared somewhere else than it stands."""
    return next((found for found in query.find_all(exp.Collate) if not _ends(found, query)), None)


def _ends(collate: exp.Expr, root: exp.Expr) -> bool:
    """Whether all that the collation bears on is evaluated with it."""
    node, held = collate, False
    while node.parent is not None:
        around, place = node.parent, node.arg_key
        plain = node.unalias().unnest() is collate
        if isinstance(around, exp.Query):
            return around is root and place == "expressions" and _shown(around, plain)
        if isinstance(around, exp.Predicate):
            return not held and not (isinstance(around.args.get("expression"), exp.Any | exp.All))
        if isinstance(around, exp.Ordered):
            return plain
        if isinstance(around, exp.Window) and place == "partition_by":
            return plain
        if isinstance(around, exp.Group | exp.Table | exp.Lateral | exp.Unnest | exp.Join):
            return False
        held = held or isinstance(around, exp.Window) or is_aggregate(around)
        node = around
    return False


def _shown(query: exp.Expr, plain: bool) -> bool:
    """Whether a column of the query is only shown. An ORDER BY may mean it by its name."""
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        return False
    return plain or query.args.get("order") is None
