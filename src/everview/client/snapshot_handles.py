"""One version of all tables and views, kept until it is closed.

A snapshot reads one version of the whole store and of its definitions, so all rows that are
read from it belong together, however long that takes.

    >>> import everview, tempfile
    >>> db = everview.open(tempfile.mkdtemp())
    >>> _ = db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER)")
    >>> _ = db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM t")
    >>> _ = db.sql("INSERT INTO t VALUES (1, 10), (2, 20); FLUSH")
    >>> with db.snapshot() as now:
    ...     _ = db.sql("DELETE FROM t; FLUSH")
    ...     now.view("total").get(), now.table("t").count(), now.sql("SELECT max(n) FROM t").rows()
    ({'n': 30}, 2, [(20,)])
    >>> db.close()

Views of one group are at one epoch. Tables are at the end of the logs, views at the last committed epoch
of their group.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import TracebackType

import pyarrow as pa
from sqlglot import exp

from everview.boundary import fast, public
from everview.catalog import Definitions, ViewDefinition, ViewStatus
from everview.change.frontier import Frontier
from everview.change.schema import Schema
from everview.client.exported_arrow import exported_table
from everview.client.known_views import not_built
from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.client.statements import execute
from everview.client.table_handles import no_key, scanned
from everview.client.view_handles import ViewReader
from everview.client.view_rows import ViewRows
from everview.errors import SqlRefusedError
from everview.operators.bound import BoundPlan
from everview.sql.parameters import Values
from everview.sql.parse import parse
from everview.sql.statements import Select
from everview.store import contract
from everview.store.contract import Row, Table

ATTEMPTS = 20


def opened(
    context: SessionContext, take: Callable[[], contract.TableSnapshot]
) -> tuple[contract.TableSnapshot, Definitions]:
    """A snapshot and its definitions. If definitions change all the time they may be a little newer
    than the rows, but never older."""
    for attempt in range(ATTEMPTS):
        before = context.store.metadata.version()
        snapshot = take()
        try:
            definitions = context.catalog.definitions()
            if attempt == ATTEMPTS - 1 or context.store.metadata.version() == before:
                return snapshot, definitions
        except BaseException:
            snapshot.close()
            raise
        snapshot.close()
    raise AssertionError("the last attempt has returned")


@public
class SnapshotTable:
    """One base table in a snapshot."""

    def __init__(self, table: Table, reader: contract.TableReader) -> None:
        self._table = table
        self._reader = reader

    @property
    def name(self) -> str:
        return self._table.name

    @property
    def schema(self) -> Schema:
        return self._table.schema

    @fast
    def get(self, *key: object) -> Row | None:
        """The row with this key, or None."""
        self._need_key("get")
        return self._reader.get(*key)

    def get_many(self, keys: pa.Table | Sequence[object]) -> pa.Table:
        """The rows that exist, in the order of the keys."""
        self._need_key("get_many")
        return exported_table(self._reader.get_many(keys), self._table.schema.columns)

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> Result:
        """Rows in key order: with this prefix of the key, from ``start`` to before ``stop``."""
        if prefix or start is not None or stop is not None:
            self._need_key("scan by key")
        return scanned(self._table, self._reader.scan(prefix, start=start, stop=stop, limit=limit))

    def count(self) -> int:
        return self._reader.count()

    def _need_key(self, call: str) -> None:
        if self._table.schema.hidden_key:
            raise no_key(self._table, call)


@public
class Snapshot:
    """Views and tables of one version of the store. Close it, or use it in a ``with`` block: the store
    keeps the version until then."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._held, self._definitions = opened(context, context.store.snapshot)
        try:
            self._plans = self._planned()
        except BaseException:
            self._held.close()
            raise

    def _planned(self) -> dict[str, BoundPlan | None]:
        """The plan of each group: looked up now, since the store forgets plans that are not used."""
        live = {view.group for view in self._definitions.views() if view.status is ViewStatus.LIVE}
        return {group: self._context.views.plans.at(group, self._held.committed(group).epoch) for group in live}

    def _rows(self, view: ViewDefinition) -> ViewRows:
        plan = self._plans.get(view.group)
        if plan is None or view.name not in plan.plan.by_name:
            raise not_built(view)
        return self._context.views.under(view, plan)

    @property
    def frontier(self) -> Frontier:
        """The end of the logs in this version, which its tables reflect."""
        return self._held.frontier

    def epoch(self, view: str) -> int:
        """The epoch at which a view is in this version."""
        return self._held.committed(self._definitions.view(view).group).epoch

    def view(self, name: str) -> ViewReader:
        """A view by name: get, get_many, scan, count."""
        return ViewReader(self._rows(self._definitions.view(name)), self._held)

    def table(self, name: str) -> SnapshotTable:
        """A table by name: get, get_many, scan, count."""
        table = self._definitions.table(name)
        return SnapshotTable(table, self._held.table(table))

    def sql(self, text: str, params: Values | None = None, dialect: str | None = None) -> Result:
        """A SELECT over the snapshot. Its result is read before the snapshot is closed."""
        if not all(isinstance(one, Select) for one in parse(text, dialect or self._context.settings.dialect, params)):
            raise SqlRefusedError("a snapshot is read with SELECT only", hint="use db.sql for other statements")
        context = copy.copy(self._context)
        context.versions = _Held(self._held, self._definitions, self._rows)
        return execute(context, text, params, dialect)

    def close(self) -> None:
        """Release the version."""
        self._held.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Lent:
    """A snapshot that the borrower does not close."""

    def __init__(self, held: contract.TableSnapshot) -> None:
        self._held = held

    def close(self) -> None:
        """Nothing: its owner closes it."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._held, name)


class _Held:
    """The version that a snapshot's own queries read."""

    def __init__(
        self, held: contract.TableSnapshot, definitions: Definitions, rows: Callable[[ViewDefinition], ViewRows]
    ) -> None:
        self._lent = _Lent(held)
        self._definitions = definitions
        self._rows = rows

    def rows(self, view: ViewDefinition, snapshot: contract.TableSnapshot) -> ViewRows:
        return self._rows(view)

    def opened(self, trees: Sequence[exp.Expr]) -> tuple[contract.TableSnapshot, Definitions]:
        return self._lent, self._definitions  # type: ignore[return-value]
