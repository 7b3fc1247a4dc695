"""Where statements hand over to whoever keeps views up to date.

One sentence: a statement that makes a view or an index records it and calls :meth:`created`; what
was created is built by :meth:`settle`; a query that reads a view calls :meth:`rows`; FLUSH calls
:meth:`flush`; nothing else of the client knows how views are maintained.

What holds at the hand-over:

- *created*: the definition is committed in the catalog with the status ``building``, in the group
  its options ask for, without state tables. Whoever builds it gives it state tables and makes it
  ``live``.
- *settle*: what was created by statements one after another is built together, before anything else
  is executed. The call may return before that, where another process maintains the store's views.
- *dropped*: state tables of what was dropped are marked in the catalog as discarded, in the same
  commit. Whoever maintains the views removes their rows, after the last epoch that writes there.
- *rows*: the snapshot is the reader's; rows come in the order of the view's row key, or in the
  order the view says, with exactly the view's columns.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from everview.catalog import Catalog, Maintained, ViewDefinition, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import DeadlineError, DefinitionError, LeaseTakenError, SnapshotExpiredError
from everview.maintain import Maintainer
from everview.operators.bound import BoundPlan
from everview.operators.view_reader import ViewReader
from everview.plan.compile import CompiledView
from everview.sql.settings import connect
from everview.store.contract import Snapshot, Store

_POLL = 0.005


class Maintenance:
    """What the client asks of the maintenance of views."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._maintainer = Maintainer(store, catalog)
        self._waiting = False

    def created(self, found: Maintained, compiled: CompiledView | None = None) -> None:
        """A view or an index was recorded, or recorded anew under its old id. What it compiled to
        may be told, to spare compiling it again."""
        self._waiting = True
        if compiled is not None:
            self._maintainer.plans.learn(found, compiled.input)

    def settle(self) -> None:
        """Build what was recorded, all of it together, where nobody maintains the store's views."""
        if not self._waiting:
            return
        self._waiting = False
        with contextlib.suppress(LeaseTakenError), self._maintainer.lease():
            self._maintainer.recover()
            self._maintainer.build()
            self._maintainer.tidy()

    def rows(
        self, view: ViewDefinition, snapshot: Snapshot, prefixes: Sequence[tuple[object, ...]] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a view as of the last committed epoch of the snapshot; with ``prefixes``
        those whose row key begins with one of them, and perhaps others."""
        epoch = snapshot.committed(view.group).epoch
        bound = self._held(view, epoch)
        reader = ViewReader(bound, view.name)
        parts = [None] if prefixes is None else [reader.begins(values) for values in _in_order(view, reader, prefixes)]
        blocks: Iterable[pa.Table] = (block for part in parts for block in reader.scan(snapshot, epoch, part))
        if reader.view.order:
            blocks = ordered(reader, blocks)
        for block in blocks:
            yield from reader.shown(block).to_batches()

    def _held(self, view: ViewDefinition, epoch: int) -> BoundPlan:
        """The plan that says where a view's rows are as of an epoch."""
        plans = self._maintainer.plans
        last = plans.last(view.group)
        if last is None or view.name not in last[1].plan.by_name:
            raise not_built(view)
        found = plans.at(view.group, epoch)
        if found is last[1]:
            return found
        means = last[1].plan.view_fingerprint(view.name)
        if found is None or view.name not in found.plan.by_name or found.plan.view_fingerprint(view.name) != means:
            raise SnapshotExpiredError(
                f"view {view.name} is kept in other tables since the snapshot was taken",
                detail=f"the snapshot is of epoch {epoch}",
                hint="read it again from a new snapshot",
            )
        return found

    def flush(self, timeout: float | None = None) -> None:
        """Return when every view reflects every write that was acknowledged before the call: by
        maintaining them here, or, where another process does, by waiting for it."""
        wanted = self._store.log.latest()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                with self._maintainer.lease():
                    self._maintainer.catch_up(wanted, deadline)
                    return
            except LeaseTakenError:
                if self._reached(wanted):
                    return
            if deadline is not None and time.monotonic() > deadline:
                raise DeadlineError(
                    "the views do not reflect every write yet",
                    detail=f"{timeout} s are over, and another process maintains them",
                    hint="wait longer, or see how far it is in the status",
                )
            time.sleep(_POLL)

    def _reached(self, wanted: Frontier) -> bool:
        found = self._catalog.definitions().maintained()
        return all(one.status is ViewStatus.LIVE for one in found) and all(
            wanted <= self._store.views.committed(group).frontier for group in {one.group for one in found}
        )


def _in_order(
    view: ViewDefinition, reader: ViewReader, prefixes: Sequence[tuple[object, ...]]
) -> list[tuple[object, ...]]:
    """Values of the first columns of the view's key, as values of the first parts of its row key."""
    stored = {column.name: column.stored for column in reader.view.columns}
    found = []
    for values in sorted(prefixes, key=repr):
        given = {stored[name]: value for name, value in zip(view.key, values, strict=False)}
        found.append(tuple(given[name] for name in itertools.takewhile(given.__contains__, reader.view.key)))
    return list(dict.fromkeys(found))


def ordered(reader: ViewReader, blocks: Iterable[pa.Table]) -> list[pa.Table]:
    """Stored rows in the order in which the view is read."""
    rows = list(blocks)
    if not rows:
        return []
    order = ", ".join(
        f"{part.sql} {'DESC' if part.descending else 'ASC'} NULLS {'FIRST' if part.nulls_first else 'LAST'}"
        for part in reader.view.order
    )
    with connect() as connection:
        whole = pa.concat_tables(rows)
        whole = whole.append_column("__n", pa.array(range(len(whole))))
        connection.register("stored", whole)
        places = connection.sql(f"SELECT __n FROM stored ORDER BY {order}, __n").to_arrow_table()
    return [whole.drop_columns(["__n"]).take(places["__n"])]


def not_built(view: ViewDefinition) -> DefinitionError:
    return DefinitionError(
        f"view {view.name} is not built yet",
        detail="it is recorded, and its rows have not been computed",
        hint="it can be read when it is built; until then run its query as a SELECT",
    )
