"""Indexes: the rows of a table or view by other columns than its key.

An index is a relation of the indexed columns and the row key, and these together, in
this order, are what its entries are found by.

    >>> columns = (Column("id", parse_type("BIGINT"), nullable=False), Column("city", parse_type("VARCHAR")))
    >>> print(outline(index_relation(NamedRelation("people", "table", columns, ("id",)), ("city",))))
    project "people.city" AS city, "people.id" AS id  [id]
      scan people (id, city)  [people.id]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from everview.errors import UnknownObjectError
from everview.plan.build.context import BuildContext
from everview.plan.build.from_clause import scan
from everview.plan.expressions import of_field
from everview.plan.relations import Project, outline, project
from everview.sql.namespace import NamedRelation, nearest
from everview.sql.typer import typer

__all__ = ["index_relation", "outline"]


def index_relation(on: NamedRelation, columns: Sequence[str]) -> Project:
    """The indexed columns and the row key of a table or view."""
    source = scan(BuildContext(typer(), {on.name.lower(): on}), exp.to_table(on.name, quoted=True))
    wanted = [*columns, *(name for name in on.key if name.lower() not in {column.lower() for column in columns})]
    outputs = []
    for name in wanted:
        found = on.column(name)
        if found is None:
            near = nearest(name, [column.name for column in on.columns])
            raise UnknownObjectError(
                f"{on.name} has no column {name}", hint=f"did you mean {near}?" if near else "index a column it shows"
            )
        field = source.field(f"{source.alias}.{found.name}")
        outputs.append((replace(field, name=found.name), of_field(field)))
    return project(source, outputs)
