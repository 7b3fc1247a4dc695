"""Which side of a join the columns of USING come from.

Sqlglot writes ``coalesce(a.k, b.k)`` for a column that USING or NATURAL has made
one of two; all but full joins can do with a plain column, which is what keys are made of.

| join | ``k`` is |
|---|---|
| inner, left, semi, anti, as-of | the left side's |
| right | the right side's |
| full | the first of both that is not null |

So is what the next join by USING compares with, where sqlglot takes the first table that has such a column.

An as-of join by USING has its inequality in the last column, which sqlglot takes for one more
equality: the left side's is at least the right side's.
"""

from __future__ import annotations

from sqlglot import exp

BY_NAMES = "by_names"
"""The mark of a join that was written with USING or NATURAL."""
AS_OF = "as_of_using"
"""The mark of an as-of join that was written with USING."""


def joined_columns(select: exp.Select) -> None:
    """Replace the coalesces that sqlglot made for USING, which have no place in the text."""
    joins = [join for join in select.find_all(exp.Join) if join.parent_select is select]
    sides = {join.alias_or_name: join.side for join in joins}
    made: dict[str, list[exp.Expr]] = {}
    for join in joins:
        if join.meta.pop(BY_NAMES, False):
            _compare(join, made)
        _as_of(join)
    for coalesce in list(select.find_all(exp.Coalesce)):
        parts = [coalesce.this, *coalesce.expressions]
        ours = "start" not in coalesce.meta and all(isinstance(part, exp.Column) for part in parts)
        if (
            not ours
            or len({part.name for part in parts}) != 1
            or not {part.table for part in parts[1:]} <= sides.keys()
        ):
            continue
        kept = [parts[0]]
        for part in parts[1:]:
            side = sides[part.table]
            if side == "FULL":
                kept.append(part)
            elif side == "RIGHT":
                kept = [part]
        if len(kept) < len(parts):
            coalesce.replace(_first(kept))


def _compare(join: exp.Join, made: dict[str, list[exp.Expr]]) -> None:
    """Have a join compare with the columns that earlier ones have made, and add its own."""
    on = join.args.get("on")
    for equal in list(on.flatten()) if isinstance(on, exp.And) else [on] if on is not None else []:
        if not isinstance(equal, exp.EQ) or not isinstance(equal.expression, exp.Column):
            continue
        right = equal.expression
        left = made.get(right.name) or [equal.this.copy()]
        if right.name in made:
            equal.set("this", _first(left))
        side = join.side.upper()
        made[right.name] = [right] if side == "RIGHT" else [*left, right] if side == "FULL" else left


def _first(columns: list[exp.Expr]) -> exp.Expr:
    """The first of some columns that is not null."""
    first, *others = (column.copy() for column in columns)
    return exp.Coalesce(this=first, expressions=others) if others else first


def _as_of(join: exp.Join) -> None:
    if not join.meta.pop(AS_OF, False):
        return
    last = join.args["on"]
    last = last.expression if isinstance(last, exp.And) else last
    last.replace(exp.GTE(this=last.this.copy(), expression=last.expression.copy()))
