"""Views by name: rows by key, ranges of rows, and the freshness of reads.

A plain read shows the last committed epoch and does not wait. A read that asks for more
returns the committed rows with pending changes laid over them, or waits for an epoch.

    >>> import everview, tempfile
    >>> db = everview.open(tempfile.mkdtemp())
    >>> _ = db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2))")
    >>> _ = db.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY 1")
    >>> totals = db.view("totals")
    >>> db.table("orders").put({"id": 1, "customer": 7, "amount": 5})
    >>> totals.get(7), totals.get(7, fresh=True)
    (None, {'customer': 7, 'total': Decimal('5.00')})
    >>> db.flush()
    >>> totals.get(7)
    {'customer': 7, 'total': Decimal('5.00')}
    >>> totals.scan().rows(), totals.count()
    ([(7, Decimal('5.00'))], 1)
    >>> db.close()

A single get is two reads of the store, each a microsecond: the last committed epoch together with the
counter of all definitions, and the record. While the counter does not change, the place of the view's rows is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from everview.boundary import fast, public
from everview.catalog import ViewDefinition
from everview.change.frontier import Frontier
from everview.change.schema import Column
from everview.client.exported_arrow import exported_table
from everview.client.freshness import Asked, Freshness, Seek, Version, everything
from everview.client.result import Result, ResultColumn
from everview.client.subscriptions import Subscription, ViewChange
from everview.client.view_rows import ViewRows
from everview.errors import EverviewError
from everview.maintain.rounds import Rounds
from everview.operators.stored import LONGEST_KEY
from everview.store.contract import Row, TableSnapshot


@public
class ViewReader:
    """Reads of one view as of one epoch of one snapshot."""

    def __init__(self, rows: ViewRows, snapshot: TableSnapshot) -> None:
        self._rows = rows
        self._snapshot = snapshot
        self._epoch = snapshot.committed(rows.view.group).epoch

    @property
    def name(self) -> str:
        return self._rows.view.name

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._rows.view.columns

    @fast
    def get(self, *key: object) -> Row | None:
        """The row with this key, or None."""
        return self._rows.get(self._snapshot, self._epoch, key)

    def get_many(self, keys: pa.Table | Sequence[object]) -> pa.Table:
        """The rows that exist, in the order of the keys."""
        return exported_table(self._rows.get_many(self._snapshot, self._epoch, keys), self._rows.columns)

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> Result:
        """Rows in the order of the key, or in the order of the view's definition: with these values in the
        first columns of the key, from ``start`` to before ``stop``."""
        return scanned(self._rows, self._snapshot, prefix, start, stop, limit)

    def count(self) -> int:
        """How many rows there are."""
        return self._rows.count(self._snapshot, self._epoch)


def scanned(
    rows: ViewRows,
    snapshot: TableSnapshot,
    prefix: Sequence[object],
    start: Sequence[object] | None,
    stop: Sequence[object] | None,
    limit: int | None,
    close: Callable[[], None] | None = None,
) -> Result:
    """A scan of a view; ``close`` is called when the result is read or closed."""
    within = rows.within(prefix, start, stop)
    epoch = snapshot.committed(rows.view.group).epoch
    sorts = bool(rows.planned.order)

    def batches() -> Iterator[pa.RecordBatch]:
        blocks = rows.scan(snapshot, epoch, within, None if sorts else limit)
        for block in rows.ordered(blocks) if sorts else blocks:
            yield from rows.reader.shown(block[:limit] if sorts else block).to_batches()

    return Result(rows.columns, batches(), close=close)


@dataclass(frozen=True)
class _Known:
    """The place of the view's rows, valid until the counter of definitions changes."""

    counter: int
    rows: ViewRows
    find: Callable[[bytes], tuple[int, int, bytes | None]]


@public
class ViewHandle:
    """One view. A read shows the last committed epoch, or more if asked: ``fresh`` (everything
    written before the call), or at most ``max_staleness`` seconds behind; if that takes longer
    than ``deadline`` seconds, a DeadlineError contains how far the view is."""

    def __init__(self, freshness: Freshness, name: str) -> None:
        self._freshness = freshness
        self._views = freshness.views
        self._asked = name
        self._known = self._look_up()

    def _look_up(self) -> _Known:
        while True:
            counter = self._views.store.metadata.version()
            view = self._views.catalog.view(self._asked)
            rows = self._views.last(view)
            if self._views.store.metadata.version() == counter:
                return _Known(counter, rows, self._views.store.views.lookup(rows.table))

    def _now(self) -> _Known:
        if self._views.store.metadata.version() != self._known.counter:
            self._known = self._look_up()
        return self._known

    @property
    def name(self) -> str:
        return self._known.rows.view.name

    @property
    def definition(self) -> ViewDefinition:
        """The view as it is defined now."""
        return self._now().rows.view

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._known.rows.view.columns

    @property
    def result_columns(self) -> tuple[ResultColumn, ...]:
        """The columns of its rows in results."""
        return self._known.rows.columns

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that rows are found by."""
        return self._known.rows.view.key

    # -------------------------------------------------------------- one row

    @fast
    def get(
        self, *key: object, fresh: bool = False, max_staleness: float | None = None, deadline: float | None = None
    ) -> Row | None:
        """The row with this key, or None."""
        if fresh or max_staleness is not None or deadline is not None:
            with self._fresh(Asked(fresh, max_staleness, deadline), key) as found:
                if found is not None:
                    return found.get(*key)
        known = self._known
        rows = known.rows
        try:
            whole = rows.encode(key)
            place = rows.prefix + whole if len(whole) <= LONGEST_KEY else rows.place(whole)
            counter, _, record = known.find(place)
            if counter == known.counter and record is not None and rows.agrees(key):
                return rows.row(key, whole, record)
        except EverviewError:
            if self._now() is known:
                raise
        return self.get_at(key)[0]

    @fast
    def get_at(self, key: Sequence[object]) -> tuple[Row | None, int]:
        """The row, and the epoch it is of. A missing key is looked up again if the view was
        dropped or redefined meanwhile."""
        while True:
            known = self._now()
            rows = known.rows
            whole = rows.encode(key)
            _, epoch, record = known.find(rows.place(whole))
            if self._views.store.metadata.version() == known.counter:
                return (rows.row(key, whole, record) if record is not None and rows.agrees(key) else None), epoch

    # -------------------------------------------------------------- versions

    @contextmanager
    def _fresh(self, asked: Asked, key: Sequence[object]) -> Iterator[ViewReader | None]:
        """A reader of the row with this key that is as fresh as asked for; None if the last epoch is fresh enough."""
        goal, ends = self._freshness.goal(asked), asked.ends
        view = self.definition
        if self._freshness.reached(view.group, goal):
            yield None
            return
        with self.version(goal, ends, lambda rows: rows.sought([key])).snapshot as snapshot:
            yield ViewReader(self.rows_in(snapshot), snapshot)

    def rows_in(self, snapshot: TableSnapshot) -> ViewRows:
        """The view under the plan of a snapshot."""
        view = self._known.rows.view
        return self._views.at(view, snapshot.committed(view.group).epoch)

    def version(self, goal: Frontier, ends: float | None, seek: Seek = everything) -> Version:
        """A snapshot in which the view reflects the goal, or the rows of it that are sought."""
        rounds = Rounds(f"view {self._asked} is redefined again and again, and cannot be read", ends)
        while True:
            known = self._now()
            found = self._freshness.version([known.rows.view], goal, ends, seek=seek)
            if self._views.store.metadata.version() == known.counter:
                return found
            found.snapshot.close()
            rounds.changed(known.counter)

    def _opened(self, asked: Asked, seek: Seek = everything) -> TableSnapshot:
        return self.version(self._freshness.goal(asked), asked.ends, seek).snapshot

    # -------------------------------------------------------------- many rows

    def get_many(
        self,
        keys: pa.Table | Sequence[object],
        *,
        fresh: bool = False,
        max_staleness: float | None = None,
        deadline: float | None = None,
    ) -> pa.Table:
        """The rows that exist, in the order of the keys."""
        asked = Asked(fresh, max_staleness, deadline)
        with self._opened(asked, lambda rows: rows.sought_keys(keys)) as snapshot:
            return ViewReader(self.rows_in(snapshot), snapshot).get_many(keys)

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
        fresh: bool = False,
        max_staleness: float | None = None,
        deadline: float | None = None,
    ) -> Result:
        """Rows in the order of the key, or in the order of the view's definition: with these values in the
        first columns of the key, from ``start`` to before ``stop``."""
        asked = Asked(fresh, max_staleness, deadline)
        snapshot = self._opened(asked, lambda rows: rows.sought_prefix(prefix))
        try:
            return scanned(self.rows_in(snapshot), snapshot, prefix, start, stop, limit, snapshot.close)
        except BaseException:
            snapshot.close()
            raise

    def count(self, *, fresh: bool = False, max_staleness: float | None = None, deadline: float | None = None) -> int:
        """How many rows there are."""
        with self._opened(Asked(fresh, max_staleness, deadline)) as snapshot:
            return ViewReader(self.rows_in(snapshot), snapshot).count()

    # -------------------------------------------------------------- changes

    def subscribe(
        self, since: str | ViewChange | None = None, *, snapshot: bool = False, timeout: float | None = None
    ) -> Subscription:
        """The changes of the view, one :class:`ViewChange` for every epoch that is committed from now on,
        or that was committed after ``since`` (a change, or its token). With ``snapshot`` it begins
        with all rows if ``since`` cannot be continued. It waits for the next epoch, and ends if
        none comes for ``timeout`` seconds."""
        return Subscription(self._freshness, self, since, snapshot=snapshot, timeout=timeout)
