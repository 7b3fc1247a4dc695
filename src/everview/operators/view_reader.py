"""A view's rows, out of the state table that holds them.

What a reader sees of a view is its shown columns, computed from nothing: they are
stored under the names that the plan gave them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from everview.operators.bound import BoundPlan
from everview.operators.flow import empty
from everview.operators.stored import StoredRecords
from everview.plan.maintenance import PlannedView
from everview.store.contract import StateReader


@dataclass(frozen=True)
class StoredView:
    """Reads one view of a bound plan."""

    bound: BoundPlan
    name: str

    @property
    def view(self) -> PlannedView:
        return self.bound.plan.view(self.name)

    @functools.cached_property
    def stored(self) -> StoredRecords:
        step = self.bound.plan.step(self.view.step)
        return StoredRecords(self.bound.state_table(step), step.states[0], self.bound.members(step))

    @functools.cached_property
    def prefix(self) -> bytes:
        """What the keys of this view's records begin with."""
        if self.stored.members is None:
            return b""
        tag: bytes = self.stored.members.tags[self.bound.number_of(self.view)].as_py()
        return tag

    def begins(self, values: Sequence[object]) -> bytes:
        """What the keys of all rows begin with whose row key begins with these values. Other rows'
        keys may begin so too, where keys are too long for the store."""
        return self.prefix + self.stored.begins(values)

    def scan(
        self, reader: StateReader, as_of: int, prefix: bytes | None = None, block: int = 65_536
    ) -> Iterator[pa.Table]:
        """Rows in the order of the row key, block by block: all stored columns."""
        after: bytes | None = None
        while True:
            found = reader.scan(self.stored.table, self.prefix if prefix is None else prefix, as_of, block, after)
            if len(found.keys):
                yield self.stored.table_of(found.keys, found.values)
            if len(found.keys) < block:
                return
            after = found.keys[-1].as_py()

    def rows(self, reader: StateReader, as_of: int) -> pa.Table:
        """All rows."""
        return pa.concat_tables([empty(self.schema), *map(self.shown, self.scan(reader, as_of))])

    @functools.cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(one.name, one.type.arrow) for one in self.view.columns])

    def shown(self, stored: pa.Table) -> pa.Table:
        """Stored rows as a reader sees them."""
        return pa.table([stored[one.stored] for one in self.view.columns], schema=self.schema)
