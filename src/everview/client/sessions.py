"""Sessions: a client sees what it has written, and never less than it has seen.

A session is one frontier of what it has written and seen, and every view that it reads
reflects at least that.

    >>> import everview, tempfile
    >>> db = everview.open(tempfile.mkdtemp())
    >>> _ = db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER)")
    >>> _ = db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM t")
    >>> with db.session() as session:
    ...     session.table("t").put({"id": 1, "n": 10})
    ...     session.view("total").get(), db.view("total").get()
    ({'n': 10}, {'n': None})
    >>> with db.session(session.token) as other:    # in another process, perhaps
    ...     other.sql("SELECT n FROM total").rows()
    [(10,)]
    >>> db.close()

The guarantees, for all views of all groups:

- *Read your writes*: a view shows everything that the session wrote before (the session guarantee of
  the paper on views for eventually consistent record stores, definition 4).
- *Monotonic reads*: a view shows at least what any view showed to the session before.

If an epoch is missing, the rows are computed for this reader, or it waits (:mod:`everview.client.freshness`).
Tables always show their newest rows, so reading them does not change a session.

The position of a write is the end of the logs when it returned: that may be a little later than the
write itself, but never earlier.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from types import TracebackType

import pyarrow as pa
from sqlglot import exp

from everview.boundary import fast, public
from everview.catalog import Definitions, ViewDefinition
from everview.change.frontier import Frontier
from everview.client.freshness import Asked, Freshness, Seek, everything
from everview.client.reading import SessionContext, views_in
from everview.client.result import Result
from everview.client.snapshot_handles import opened
from everview.client.statements import execute
from everview.client.table_handles import BatchHandle, TableHandle
from everview.client.view_handles import ViewHandle, ViewReader, scanned
from everview.client.view_rows import ViewRows
from everview.errors import InputError
from everview.sql.parameters import Values
from everview.store import contract
from everview.store.contract import Row


@public
class Session:
    """The reads and writes of one client, one after another. Several threads may use it; then each sees
    what any of them has written and seen."""

    def __init__(self, context: SessionContext, freshness: Freshness, token: str | None = None) -> None:
        self._context = context
        self._freshness = freshness
        self._lock = threading.Lock()
        self._reflects = Frontier() if token is None else Frontier.parse(token)
        latest = context.store.log.latest()
        if not self._reflects <= latest:
            raise InputError(
                f"the session {token} is ahead of the store",
                detail=f"the logs end at {latest}",
                hint="the token is of another store, or of this one before it was restored",
            )

    @property
    def token(self) -> str:
        """The token with which another process continues the session: ``db.session(token)``."""
        return str(self._reflects)

    @property
    def frontier(self) -> Frontier:
        """The frontier that every view reflects that the session reads."""
        return self._reflects

    @fast
    def wrote(self) -> None:
        """Record a write of this session: views must reflect the current end of the logs from now on."""
        self.saw(self._context.store.log.latest())

    @fast
    def saw(self, frontier: Frontier) -> None:
        """Record the frontier that a view has shown."""
        with self._lock:
            if not frontier <= self._reflects:
                self._reflects |= frontier

    # -------------------------------------------------------------- writing

    def table(self, name: str) -> SessionTable:
        return SessionTable(self, self._context, name)

    def batch(self) -> SessionBatch:
        """Writes over several tables, atomic: ``with session.batch() as b: b.table(name).put(…)``."""
        return SessionBatch(self, BatchHandle(self._context.catalog, self._context.store.batch()))

    # -------------------------------------------------------------- reading

    def view(self, name: str) -> SessionView:
        return SessionView(self, self._freshness, name)

    def sql(
        self,
        text: str,
        params: Values | None = None,
        dialect: str | None = None,
        *,
        fresh: bool = False,
        max_staleness: float | None = None,
        deadline: float | None = None,
    ) -> Result:
        """Execute statements: what they write counts as written, and what they read is at least what
        the session has written and seen."""
        context = copy.copy(self._context)
        context.versions = FreshVersions(self._context, self._freshness, Asked(fresh, max_staleness, deadline), self)
        context.wrote = self.wrote
        return execute(context, text, params, dialect)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A session holds no resources: its token stays valid."""


class FreshVersions:
    """Versions of the store in which the views that a statement reads are as fresh as asked for."""

    def __init__(
        self, context: SessionContext, freshness: Freshness, asked: Asked, session: Session | None = None
    ) -> None:
        self._context = context
        self._freshness = freshness
        self._asked = asked
        self._session = session

    def opened(self, trees: Sequence[exp.Expr]) -> tuple[contract.TableSnapshot, Definitions]:
        asked = self._asked
        goal, ends = self._freshness.goal(asked), asked.ends
        if self._session is not None:
            goal |= self._session.frontier

        def take() -> contract.TableSnapshot:
            views = views_in(trees, self._context.catalog.definitions())
            version = self._freshness.version(views, goal, ends, newest=asked.fresh)
            if self._session is not None:
                self._session.saw(version.shown)
            return version.snapshot

        return opened(self._context, take)

    def rows(self, view: ViewDefinition, snapshot: contract.TableSnapshot) -> ViewRows:
        return self._freshness.views.at(view, snapshot.committed(view.group).epoch)


@public
class SessionTable(TableHandle):
    """A table whose writes a session remembers."""

    def __init__(self, session: Session, context: SessionContext, name: str) -> None:
        super().__init__(context.store, context.catalog, name)
        self._session = session

    @fast
    def put(self, row: Row) -> None:
        super().put(row)
        self._session.wrote()

    def put_many(self, rows: pa.Table | Sequence[Row]) -> int:
        count = super().put_many(rows)
        self._session.wrote()
        return count

    @fast
    def delete(self, *key: object) -> None:
        super().delete(*key)
        self._session.wrote()

    def delete_many(self, keys: pa.Table | Sequence[object]) -> int:
        count = super().delete_many(keys)
        self._session.wrote()
        return count


@public
class SessionBatch:
    """A batch whose writes a session remembers."""

    def __init__(self, session: Session, batch: BatchHandle) -> None:
        self._session = session
        self._batch = batch

    def __enter__(self) -> BatchHandle:
        return self._batch.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._batch.__exit__(kind, error, trace)
        if kind is None:
            self._session.wrote()


@public
class SessionView:
    """A view that shows at least what a session has written and seen."""

    def __init__(self, session: Session, freshness: Freshness, name: str) -> None:
        self._session = session
        self._freshness = freshness
        self._view = ViewHandle(freshness, name)
        self._last = (-1, Frontier())
        """The last epoch that was read here, and its frontier or a later one."""

    @property
    def name(self) -> str:
        return self._view.name

    @fast
    def get(
        self, *key: object, fresh: bool = False, max_staleness: float | None = None, deadline: float | None = None
    ) -> Row | None:
        """The row with this key, or None."""
        asked = Asked(fresh, max_staleness, deadline)
        goal, ends = self._goal(asked), asked.ends
        if goal <= self._last[1] or self._reached(goal):
            row, epoch = self._view.get_at(key)
            if epoch != self._last[0]:
                self._reached(goal)
            self._session.saw(self._last[1])
            return row
        snapshot = self._opened(goal, ends, lambda rows: rows.sought([key]))
        with snapshot:
            return ViewReader(self._view.rows_in(snapshot), snapshot).get(*key)

    def _goal(self, asked: Asked) -> Frontier:
        return self._session.frontier | self._freshness.goal(asked)

    def _reached(self, goal: Frontier) -> bool:
        commit = self._freshness.store.views.committed(self._view.definition.group)
        self._last = commit.epoch, commit.frontier
        return goal <= commit.frontier

    def _opened(self, goal: Frontier, ends: float | None, seek: Seek = everything) -> contract.TableSnapshot:
        version = self._view.version(goal, ends, seek)
        self._session.saw(version.shown)
        return version.snapshot

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
        with self._opened(self._goal(asked), asked.ends, lambda rows: rows.sought_keys(keys)) as snapshot:
            return ViewReader(self._view.rows_in(snapshot), snapshot).get_many(keys)

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
        """Rows in the order of the key, or in the order of the view's definition."""
        asked = Asked(fresh, max_staleness, deadline)
        snapshot = self._opened(self._goal(asked), asked.ends, lambda rows: rows.sought_prefix(prefix))
        try:
            return scanned(self._view.rows_in(snapshot), snapshot, prefix, start, stop, limit, snapshot.close)
        except BaseException:
            snapshot.close()
            raise

    def count(self, *, fresh: bool = False, max_staleness: float | None = None, deadline: float | None = None) -> int:
        """How many rows there are."""
        asked = Asked(fresh, max_staleness, deadline)
        with self._opened(self._goal(asked), asked.ends) as snapshot:
            return ViewReader(self._view.rows_in(snapshot), snapshot).count()
