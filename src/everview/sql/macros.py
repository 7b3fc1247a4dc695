"""DuckDB's macros that aggregate, or make several rows of one, written out.

``geomean``, ``weighted_avg``, ``regexp_split_to_table`` and their like are no aggregates and no
UNNEST to DuckDB but texts made of some, and written out these are kept like any others.

::

    SELECT g, geomean(x) FROM t GROUP BY g
    SELECT g, exp(avg(ln(x))) FROM t GROUP BY g

Over a window the macro stays, and so does one that is read from: there DuckDB evaluates the call as a whole.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from sqlglot import exp

from everview.errors import EverviewError
from everview.sql.calls import aggregates, called
from everview.sql.dialects import DEFAULT, reader
from everview.sql.namespace import fold
from everview.sql.typer import typer


@dataclass(frozen=True)
class _Macro:
    parameters: tuple[str, ...]
    body: exp.Expr


@functools.cache
def _macros() -> dict[str, _Macro]:
    """The macros with an aggregate or an UNNEST in them, by name. One may be made of another."""
    read: dict[str, _Macro] = {}
    for name, parameters, definition in typer().macros():
        try:
            body = reader(DEFAULT).read(f"SELECT {definition}").expressions[0].pop()
        except EverviewError:
            continue
        for node in body.walk():
            node.meta.clear()
        read[name] = _Macro(tuple(map(fold, parameters)), body)
    rows = exp.Explode, exp.Unnest
    found = {name: macro for name, macro in read.items() if aggregates(macro.body) or macro.body.find(*rows)}
    while True:
        more = {
            name: macro
            for name, macro in read.items()
            if name not in found and any(called(node) in found for node in macro.body.walk())
        }
        if not more:
            return found
        found |= more


_WHOLE = (exp.Window, exp.Table, exp.Lateral)


def macros(tree: exp.Expr) -> None:
    """Put the texts of such macros in the place of their calls, in place."""
    waiting = list(tree.find_all(exp.Anonymous))
    while waiting:
        call = waiting.pop()
        macro = _macros().get(called(call))
        if macro is None or len(macro.parameters) != len(call.expressions) or isinstance(call.parent, _WHOLE):
            continue
        values = dict(zip(macro.parameters, call.expressions, strict=True))
        holder = exp.Paren(this=macro.body.copy())
        for column in list(holder.find_all(exp.Column)):
            value = values.get(fold(column.name)) if not column.table else None
            if value is not None:
                column.replace(exp.Paren(this=value.copy()))
        call.replace(holder)
        waiting.extend(holder.find_all(exp.Anonymous))
