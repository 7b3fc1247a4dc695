"""A database whose maintenance goes on step by step, on request.

A :class:`Kept` does what a user does (SQL) and what a maintainer does (one chunk, one
epoch, one joining), and compares every view that can be read with its query over the base rows as
they were at the frontier of the view's group.

The base rows are remembered here, as they were after every write; the recomputation is DuckDB's.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import everview
from everview.catalog import IndexDefinition, Maintained, ViewDefinition, ViewStatus
from everview.change.frontier import Frontier
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.maintainer import Maintainer
from everview.maintain.metrics import FIGURES
from everview.maintain.trimming import Trimmer, set_retention
from everview.operators.bound import QUARANTINE
from everview.operators.members import tags_of
from everview.operators.quarantine_records import Unvalued, listed
from everview.operators.view import StoredView
from everview.plan.maintenance import Shape
from everview.store.embedded.store import EmbeddedStore
from tests.oracle.base import emptied
from tests.oracle.maintained import bag

TABLES = """
    CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, x INTEGER, s VARCHAR);
    CREATE TABLE b (id INTEGER PRIMARY KEY, k INTEGER, y DOUBLE);
    CREATE TABLE c (k INTEGER, z VARCHAR);
"""


class Kept:
    """Views are recorded by :meth:`sql` and built by :meth:`turn`, a chunk of ``chunk`` rows or an epoch
    of ``operations`` writes at a time. ``tables`` are created; a store that is there has its own."""

    def __init__(
        self, path: Path, *, chunk: int = 3, operations: int = 4, before_images: bool = True, tables: str = TABLES
    ) -> None:
        self.db = everview.open(path, durability="none", map_size=1 << 28, before_images=before_images)
        self.maintainer = Maintainer(self.store, self.db.catalog, EpochSizes(operations), chunk)
        self.maintainer.trimmer = Trimmer(self.store, self.db.catalog, every=0)
        set_retention(self.store, operations=0, age=0)
        self._past: dict[Frontier, dict[str, pa.Table]] = {}
        self.remember()
        self.sql(tables)

    @property
    def store(self) -> EmbeddedStore:
        store = self.db.store
        assert isinstance(store, EmbeddedStore)
        return store

    def close(self) -> None:
        self.db.close()

    # -------------------------------------------------------------- what a user does

    def sql(self, text: str) -> None:
        """Execute statements while somebody else holds the lease: views are recorded, not built."""
        for statement in filter(str.strip, text.split(";")):
            with self.store.lease("maintenance"):
                self.db.sql(statement)
            self.remember()

    def remember(self) -> None:
        """Every write is one batch, so a frontier is always one of those remembered."""
        rows = {
            table.name: pa.Table.from_batches(self.store.table(table).scan(), schema=table.schema.arrow).select(
                [column.name for column in table.schema.shown]
            )
            for table in self.db.catalog.tables()
        }
        self._past[self.store.log.latest()] = rows

    # -------------------------------------------------------------- what a maintainer does

    def turn(self) -> bool:
        """Do the next piece of work: an epoch of a group, or else of a build; whether there was one."""
        m = self.maintainer
        m.recover()
        m.trim()
        latest = self.store.log.latest()
        for group in m.groups():
            if m.epochs.step(group, m.plan_of(group), latest) is not None:
                return True
        return self.turn_of_build()

    def turn_of_build(self) -> bool:
        m = self.maintainer
        m.recover()
        for build in m.builder.builds():
            m.step(build)
            return True
        for target, found in m.builder.waiting().items():
            m.start(target, found)
            return True
        return False

    def settle(self) -> None:
        """Everything there is to do, a step at a time; all views are compared after each."""
        while self.turn():
            self.check()
        self.maintainer.tidy()
        self.check()
        self.check_nothing_is_left()

    # -------------------------------------------------------------- what must hold

    def live(self) -> list[Maintained]:
        return [one for one in self.db.catalog.definitions().maintained() if one.status is ViewStatus.LIVE]

    def rows(self, name: str) -> pa.Table:
        one = self.db.catalog.definitions().find(name)
        assert isinstance(one, ViewDefinition | IndexDefinition)
        last = self.maintainer.plans.last(one.group)
        assert last is not None
        return StoredView(last[1], one.name).rows(self.store.views, self.store.views.committed(one.group).epoch)

    def check(self) -> None:
        """Every view that can be read is what its query says of the rows at its group's frontier, and has
        as many rows as its figures say: those that came, without those that went."""
        for group in {one.group for one in self.live()}:
            rows = self._past[self.store.views.committed(group).frontier]
            expected = self._recomputed(rows)
            sums = self.maintainer.epochs.metrics.sums(self.store.views, group)
            assert sums is not None
            for one in self.live():
                if one.group == group:
                    found = self.rows(one.name)
                    wanted = expected[one.name].select(found.column_names)
                    missing, extra = bag(wanted) - bag(found), bag(found) - bag(wanted)
                    assert not missing and not extra, f"{one.kind} {one.name}: missing {missing}, extra {extra}"
                    came, _, went = sums.views[one.name].updates
                    assert came - went == len(found), (
                        f"{one.kind} {one.name} has {len(found)} rows, not {came} - {went}"
                    )

    def _recomputed(self, base: dict[str, pa.Table]) -> dict[str, pa.Table]:
        definitions = self.db.catalog.definitions()
        found: dict[str, pa.Table] = {}
        with emptied() as connection:
            for name, rows in base.items():
                connection.register(f"rows_{name}", rows)
                connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "rows_{name}"')
                connection.unregister(f"rows_{name}")
            for one in definitions._in_reading_order():
                if isinstance(one, ViewDefinition):
                    connection.execute(f'CREATE TABLE "{one.name}" AS {one.sql}')
                    found[one.name] = connection.table(one.name).to_arrow_table()
                elif isinstance(one, IndexDefinition):
                    found[one.name] = connection.table(definitions.by_id(one.on).name).to_arrow_table()
        return found

    def was(self, query: str, rows: pa.Table, since: Frontier) -> bool:
        """Whether a query over base tables has had these rows at a frontier or later."""
        wanted = bag(rows)
        return any(bag(self._asked(query, past)) == wanted for at, past in self._past.items() if since <= at)

    def _asked(self, query: str, base: dict[str, pa.Table]) -> pa.Table:
        with emptied() as connection:
            for name, rows in base.items():
                connection.register(f"rows_{name}", rows)
                connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "rows_{name}"')
                connection.unregister(f"rows_{name}")
            return connection.sql(query).to_arrow_table()

    def check_nothing_is_left(self) -> None:
        """Whatever is stored belongs to a plan that is run, and under it to a member that is there."""
        plans = [bound for group in self.maintainer.plans.groups() for bound in self.maintainer.plans.running(group)]
        plans += [self.maintainer.plans.load(build.plan) for build in self.maintainer.builder.builds()]
        known: dict[int, tuple[Shape, set[bytes]] | None] = {}
        for bound in plans:
            known[bound.states[QUARANTINE].id] = None
            for step in bound.plan.steps:
                for state in step.states:
                    id = bound.states[state.fingerprint].id
                    if step.constants is None:
                        known[id] = None
                    else:
                        shape, tags = known.get(id) or (state.shape, set())
                        known[id] = shape, tags | set(tags_of(step))
        known |= dict.fromkeys(self.figures().values())
        for key in self.state_keys():
            id = int.from_bytes(key[:4], "big")
            assert id in known, f"rows of table {id} are left, which no plan has"
            held = known[id]
            if held is not None:
                tag = key[4:12] if held[0] is Shape.RECORD else key[6:14]
                assert tag in held[1], f"rows of a member are left in table {id} that no plan has"

    def figures(self) -> dict[str, int]:
        """The tables of figures, by group: of groups that have a plan, and of builds."""
        plans, builds = self.maintainer.plans, self.maintainer.builder.builds()
        there = {group for group in plans.groups() if plans.last(group) is not None} | {one.group for one in builds}
        there |= {one.target for one in builds if one.epoch is not None}
        _, documents = self.store.metadata.documents(FIGURES)
        found = {name.removeprefix(FIGURES): int(document) for name, document in documents.items()}
        assert found.keys() <= there, "a group that is gone has left figures"
        return found

    def state_keys(self) -> list[bytes]:
        """The keys of all records and chunks of bags."""
        found: list[bytes] = []
        for shard in self.store._handle.core.shards:
            with shard.read() as txn, txn.cursor() as cursor:
                found += [key for key in cursor.iternext(values=False) if any(key[:4])]
        return found

    def documents(self) -> dict[str, bytes]:
        """What is recorded, without the past."""
        _, found = self.store.metadata.documents()
        return {name: said for name, said in found.items() if not name.startswith(("history/", "catalog/"))}

    def stored(self) -> tuple[Counter[int], dict[str, bytes]]:
        """How many keys each state table has, and all documents."""
        return Counter(int.from_bytes(key[:4], "big") for key in self.state_keys()), self.documents()

    def quarantine(self, group: str = "main") -> list[tuple[int, Unvalued]]:
        last = self.maintainer.plans.last(group)
        assert last is not None
        epoch = self.store.views.committed(group).epoch
        return listed(last[1].plan, self.store.views.scan(last[1].states[QUARANTINE], b"", epoch))

    def chunks(self) -> int:
        """How many epochs all builds that are under way have committed."""
        return sum(len(self.store.views.history(build.group)) for build in self.maintainer.builder.builds())


@contextlib.contextmanager
def kept(path: Path, *, chunk: int = 3, operations: int = 4, before_images: bool = True) -> Iterator[Kept]:
    found = Kept(path / "store", chunk=chunk, operations=operations, before_images=before_images)
    try:
        yield found
    finally:
        found.close()
