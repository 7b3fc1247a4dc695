"""What an epoch has to do, in a form that survives the process that began it.

One sentence: an :class:`EpochPlan` is the views of a group with the tables they read and
the state they keep; its bytes are written with the epoch's begin, and every attempt of the
epoch reads them back from there.

A view's own part (``ViewDefinition.plan``) is a small document: the table's id, the columns
to group by, and what to compute. An epoch's plan adds the schema as it was when the epoch
began: it is looked up after the frontier was chosen, so no entry of the epoch was written
under a newer one.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from everview.change.schema import KeyPart, Schema
from everview.operators.aggregate import Aggregate, Sum
from everview.operators.aggregate_table import AggregateTable
from everview.store.contract import StateTable, Table


@dataclass(frozen=True)
class AggregatePlan:
    """``SELECT group_by…, count(*) AS count, sum(column) AS name… FROM table GROUP BY group_by…``"""

    view: str
    table: Table
    state: StateTable
    group_by: tuple[str, ...]
    count: str
    sums: tuple[tuple[str, str], ...]
    """Pairs (name of the sum, column)."""

    def __post_init__(self) -> None:
        _ = self.target  # a plan that does not fit its table is refused at once

    @functools.cached_property
    def target(self) -> AggregateTable:
        """The table the view is kept in."""
        columns = [self.table.schema.column(name) for name in self.group_by]
        parts = tuple(KeyPart(column.name, column.type, nullable=column.nullable) for column in columns)
        sums = tuple(Sum(name, column, self.table.schema.column(column).type) for name, column in self.sums)
        return AggregateTable(self.view, parts, Aggregate(self.count, sums, f"view {self.view}"))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table that matter to the view."""
        return frozenset(self.group_by) | {column for _, column in self.sums}

    @property
    def sql(self) -> str:
        by = ", ".join(map(_quoted, self.group_by))
        sums = "".join(f", sum({_quoted(column)}) AS {_quoted(name)}" for name, column in self.sums)
        return f"SELECT {by}, count(*) AS {_quoted(self.count)}{sums} FROM {_quoted(self.table.name)} GROUP BY {by}"

    def own_part(self) -> bytes:
        """The document the catalog keeps."""
        return json.dumps({"group_by": self.group_by, "count": self.count, "sums": self.sums}).encode()

    @staticmethod
    def of(view: str, own_part: bytes, table: Table, state: StateTable) -> AggregatePlan:
        """The plan of a view from the document of the catalog."""
        plain = json.loads(own_part)
        sums = tuple((name, column) for name, column in plain["sums"])
        return AggregatePlan(view, table, state, tuple(plain["group_by"]), plain["count"], sums)


@dataclass(frozen=True)
class EpochPlan:
    """All views of a group."""

    views: tuple[AggregatePlan, ...]

    @functools.cached_property
    def tables(self) -> dict[Table, Schema]:
        """The tables the epoch reads, each with only its key and the columns that matter."""
        found: dict[Table, set[str]] = {}
        for view in self.views:
            found.setdefault(view.table, set(view.table.schema.key)).update(view.columns)
        return {table: _narrowed(table.schema, names) for table, names in found.items()}

    def to_bytes(self) -> bytes:
        views = [
            {
                "view": view.view,
                "table": [view.table.id, view.table.name, view.table.schema.to_json()],
                "state": [view.state.id, view.state.name, view.state.group],
                "own": view.own_part().decode(),
            }
            for view in self.views
        ]
        return json.dumps({"format": 1, "views": views}).encode()

    @staticmethod
    def from_bytes(data: bytes) -> EpochPlan:
        return EpochPlan(tuple(_view(plain) for plain in json.loads(data)["views"]))


def _view(plain: dict[str, object]) -> AggregatePlan:
    name, own, table, state = plain["view"], plain["own"], plain["table"], plain["state"]
    assert (
        isinstance(name, str) and isinstance(own, str) and isinstance(table, Sequence) and isinstance(state, Sequence)
    )
    return AggregatePlan.of(
        name, own.encode(), Table(table[0], table[1], Schema.from_json(table[2])), StateTable(*state)
    )


def _narrowed(schema: Schema, names: set[str]) -> Schema:
    return Schema(tuple(column for column in schema.columns if column.name in names), schema.key, schema.version)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
