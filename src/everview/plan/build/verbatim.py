"""A query that is maintained in the user's own words.

One re-evaluation over all tables that the words read, whose text is the words themselves, so
the view is what DuckDB answers to them, whatever our parser or a rule would have made of them.

No rule rewrites it: rules read texts, and this one is not ours to read. It costs what the query costs, for
every epoch that changes one of its tables.
"""

from __future__ import annotations

from sqlglot import exp

from everview.change.types import BIGINT
from everview.plan.build import Built
from everview.plan.build.context import BuildContext, Notice, QueryTyper
from everview.plan.build.from_clause import scan
from everview.plan.expressions import Field, quoted
from everview.plan.relations import QueryRows, Reevaluate, Relation, Scan
from everview.sql.positions import position
from everview.sql.words import INPUT, Worded


def verbatim(query: Worded, typer: QueryTyper, text: str, start: int, reason: str) -> Built:
    """The relation of a query that stands in ``text`` from ``start`` on; ``reason`` is why its own words
    are kept."""
    context = BuildContext(typer, {source.name.lower(): source for source in query.uses}, text)
    columns = tuple(Field(context.names.fresh(name), kind) for name, kind in query.columns)
    scans = {source.name: scan(context, exp.to_table(quoted(source.name))) for source in query.uses}
    inputs = {name: _renamed(found, number) for number, (name, found) in enumerate(scans.items())}
    rows = query.over(inputs)
    places = [f"c{number}" for number in range(len(columns))]
    shown = ", ".join(f"{place} AS {quoted(column.name)}" for place, column in zip(places, columns, strict=True))
    relation: Relation
    if not scans:
        number = Field(context.names.fresh("row"), BIGINT, nullable=False, hidden=True)
        relation = QueryRows(f"SELECT {shown} FROM ({rows})", columns, number)
        return Built(relation, columns, (), ())
    copy = Field(context.names.fresh("copy"), BIGINT, nullable=False, hidden=True)
    numbered = f"row_number() OVER (PARTITION BY {', '.join(places)}) AS {quoted(copy.name)}"
    relation = Reevaluate(
        tuple(scans.values()),
        f"SELECT {shown}, {numbered} FROM ({rows})",
        (*columns, copy),
        (*(column.name for column in columns), copy.name),
        reason=reason,
    )
    at = position(text, start)
    cost = f"every change re-evaluates it over all rows of {' and '.join(scans)}"
    return Built(relation, columns, (), (Notice(reason, at.line, at.column, cost),))


def _renamed(found: Scan, number: int) -> str:
    columns = ", ".join(
        f"{quoted(field.name)} AS {quoted(column.name)}"
        for column, field in zip(found.columns, found.fields, strict=True)
        if not column.hidden
    )
    return f"SELECT {columns} FROM {INPUT}{number}"
