"""The rows of views, for the check that compares them.

Rows are read as every reader reads them, from the tables that the plan of the epoch names,
so what is judged is what users see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from everview.catalog import Definitions, Maintained
from everview.client.reading import SessionContext
from everview.client.snapshot_handles import opened
from everview.errors import SnapshotExpiredError
from everview.maintain.quarantined import DAMAGED, quarantined_items
from everview.operators.view import StoredView
from everview.store.contract import Store, TableSnapshot

COUNTED = 10_000
"""Quarantined items of each kind are counted up to this number."""


@dataclass(frozen=True)
class ShownRows:
    """The rows of a view or index as of an epoch of a snapshot, as a stream."""

    reader: StoredView
    snapshot: TableSnapshot
    epoch: int

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    def scan(self) -> Iterator[pa.RecordBatch]:
        for block in self.reader.scan(self.snapshot, self.epoch):
            yield from self.reader.shown(block).to_batches()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self.scan()).__arrow_c_stream__(requested_schema)


class KeptViews:
    """The views of a database: :class:`everview.check.verify.ShownViews`."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context

    @property
    def store(self) -> Store:
        return self._context.store

    def opened(self) -> tuple[TableSnapshot, Definitions]:
        return opened(self._context, self._context.store.snapshot)

    def rows(self, one: Maintained, snapshot: TableSnapshot) -> ShownRows:
        epoch = snapshot.committed(one.group).epoch
        bound = self._context.views.plans.at(one.group, epoch)
        if bound is None or one.name not in bound.plan.by_name:
            raise SnapshotExpiredError(f"{one.kind} {one.name} was redefined", hint="try again")
        return ShownRows(StoredView(bound, one.name), snapshot, epoch)

    def lacking(self, group: str, snapshot: TableSnapshot) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        context = self._context
        for one in quarantined_items(context.catalog, context.views.plans, group, snapshot, COUNTED):
            found.update(dict.fromkeys(one.views, 1 if one.what == DAMAGED else one.count))
        return found
