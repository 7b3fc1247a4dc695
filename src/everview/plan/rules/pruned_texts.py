"""What the text of a re-evaluation need not read is taken out of it.

A column that a text only passes on to nobody is not named in it any more, so that its
inputs need not keep it.

Two places pass columns on: the outermost SELECT, of which only what is read above and the key is
wanted, and a SELECT that does nothing but name the columns of an input::

    SELECT o.id FROM (SELECT "orders.id" AS id, "orders.amount" AS amount FROM in0) AS o LIMIT 10 PERCENT
    SELECT o.id FROM (SELECT "orders.id" AS id FROM in0) AS o LIMIT 10 PERCENT

Texts that take columns without naming them (a star over the input, NATURAL, COLUMNS, a pivot, a row as
one value) are left alone.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from sqlglot import exp

from everview.plan.expressions import parsed, written
from everview.plan.relations import Reevaluate

_PLAIN = {"expressions", "from_", "joins", "where", "qualify"}


def without_outputs(node: Reevaluate, read: Set[str]) -> Reevaluate:
    """The re-evaluation with the columns that are read and its key, where its text just lists them."""
    tree = parsed(node.query)
    if not isinstance(tree, exp.Select) or not {key for key, value in tree.args.items() if value} <= _PLAIN:
        return node
    if len(tree.expressions) != len(node.columns):
        return node
    wanted = {*read, *node.identity}
    kept = [
        n
        for n, (field, output) in enumerate(zip(node.columns, tree.expressions, strict=True))
        if field.name in wanted or not isinstance(output.unalias(), exp.Column) or output.is_star
    ]
    if len(kept) == len(node.columns):
        return node
    kept = kept or [0]
    fewer = tree.copy()
    fewer.set("expressions", [tree.expressions[n].copy() for n in kept])
    columns = tuple(node.columns[n] for n in kept)
    still = set(node.shown_as) <= {field.name for field in columns}
    return replace(node, query=written(fewer), columns=columns, shown_as=node.shown_as if still else ())


def without_names(node: Reevaluate) -> Reevaluate:
    """The re-evaluation whose text names no column of an input in vain."""
    tree = parsed(node.query).copy()
    if tree.find(exp.Columns, exp.Pivot, exp.Command) or any(
        join.method.upper() == "NATURAL" for join in tree.find_all(exp.Join)
    ):
        return node
    changed = False
    for source in [found for found in tree.find_all(exp.Subquery) if _names_an_input(found)]:
        select, around = source.this, source.find_ancestor(exp.Select)
        if around is None or not source.alias or _takes_whole(around, source.alias):
            continue
        inside = set(map(id, select.find_all(exp.Identifier)))
        named = {found.name.lower() for found in tree.find_all(exp.Identifier) if id(found) not in inside}
        kept = [output for output in select.expressions if output.alias_or_name.lower() in named]
        kept = kept or select.expressions[:1]
        if len(kept) < len(select.expressions):
            select.set("expressions", kept)
            changed = True
    return replace(node, query=written(tree)) if changed else node


def _names_an_input(source: exp.Subquery) -> bool:
    select = source.this
    alias = source.args.get("alias")
    return (
        isinstance(select, exp.Select)
        and {key for key, value in select.args.items() if value} <= {"expressions", "from_", "order"}
        and select.args.get("from_") is not None
        and isinstance(select.args["from_"].this, exp.Table)
        and all(isinstance(output.unalias(), exp.Column) and not output.is_star for output in select.expressions)
        and not (isinstance(alias, exp.TableAlias) and alias.columns)
    )


def _takes_whole(select: exp.Select, alias: str) -> bool:
    """Whether a SELECT takes all columns of one of its sources without naming them. In a subquery the
    source may be meant from further in."""
    for star in select.find_all(exp.Star):
        of_source = isinstance(star.parent, exp.Column) and star.parent.table == alias
        of_all = isinstance(star.parent, exp.Select) and star.parent is select
        if of_source or of_all or not isinstance(star.parent, exp.Column | exp.Select | exp.Count):
            return True
    return any(not column.table and column.name.lower() == alias.lower() for column in select.find_all(exp.Column))
