"""A shop: orders come, change and go, and a view keeps the totals of each customer.

Also what every test here asks in the end: is each view what its query says of the base rows, as they
were at the frontier that the view has reached?
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from hypothesis import strategies as st

from everview.catalog import MAIN, IndexDefinition, NamedQuery, ViewDefinition, ViewStatus
from everview.client.database import Database
from everview.client.database import open as open_database
from everview.client.snapshot_handles import Snapshot
from everview.maintain.table_chunks import rows_at
from everview.maintain.tasks import Chunk
from everview.store.contract import Commit, Row
from everview.store.encoding.registering import register, unregister
from tests.oracle.base import emptied
from tests.oracle.maintained import content, difference

TABLE = "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(12,2), note VARCHAR)"
VIEW = """CREATE MATERIALIZED VIEW totals AS
    SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer"""
Write = tuple[str, Sequence[Mapping[str, object]] | Sequence[int]]

_ids = st.integers(0, 15)
_rows = st.fixed_dictionaries(
    {"id": _ids},
    optional={
        "customer": st.one_of(st.none(), st.integers(0, 3)),
        "amount": st.one_of(st.none(), st.decimals(-100, 100, places=2)),
        "note": st.sampled_from(["a", "b"]),
    },
)
writes: st.SearchStrategy[Write] = st.one_of(
    st.tuples(st.just("put"), st.lists(_rows, min_size=1, max_size=6)),
    st.tuples(st.just("delete"), st.lists(_ids, min_size=1, max_size=4)),
)


def open_shop(path: Path, *, nodes: int = 4, shards: int = 4, before_images: bool = True) -> Database:
    db = open_database(
        path, durability="none", nodes=nodes, shards=shards, before_images=before_images, map_size=1 << 30
    )
    if not db.tables():
        db.sql(TABLE)
        db.sql(VIEW)
    return db


def write(db: Database, *some: Write) -> None:
    """Each write is a batch of its own."""
    orders = db.table("orders")
    for kind, what in some:
        if kind == "put":
            orders.put_many(what)
        else:
            orders.delete_many(what)


def trade(db: Database, batches: int, seed: int) -> None:
    """A random day: batches of new, changed, partly changed and deleted orders."""
    rng = random.Random(seed)
    for _ in range(batches):
        rows: list[Row] = []
        for _ in range(rng.randint(1, 20)):
            row: Row = {"id": rng.randrange(300)}
            if rng.random() < 0.8:
                row["customer"] = rng.choice([None, *range(20)])
            if rng.random() < 0.8:
                row["amount"] = rng.choice([None, Decimal(rng.randrange(-9999, 9999)) / 100])
            rows.append(row)
        write(db, ("put", rows), ("delete", [rng.randrange(300) for _ in range(rng.randint(0, 5))]))


def assert_all_is_right(db: Database) -> Commit:
    """Every view equals its recomputation from the base rows, of which it has seen all."""
    commit = db.store.views.committed(MAIN)
    assert commit.frontier == db.store.log.latest()
    assert not (found := wrong(db)), found
    return commit


def assert_all_is_counted(db: Database) -> None:
    """The figures of the main group count every operation once, and of each view the rows that came and went."""
    metrics = db._context.views.metrics
    with db.snapshot() as snapshot:
        sums = metrics.sums(snapshot._held, MAIN)
        assert sums is not None
        assert sums.totals.operations == sum(snapshot._held.committed(MAIN).frontier.values())
        for one in snapshot._definitions.maintained():
            if one.group == MAIN and isinstance(one, ViewDefinition):
                came, _, went = sums.views[one.name].updates
                assert came - went == snapshot.view(one.name).count(), one.name


def wrong(db: Database, plain: Mapping[str, str] | None = None) -> dict[str, str]:
    """For each view that is not what it should be at its epoch, whatever is written meanwhile, what
    is missing and what is too much. ``plain`` are queries in DuckDB's own words, where they have
    others."""
    found: dict[str, str] = {}
    with db.snapshot() as snapshot:
        live = [one for one in snapshot._definitions.maintained() if one.status is ViewStatus.LIVE]
        for group in {one.group for one in live}:
            expected = _recomputed(db, snapshot, group, plain or {})
            for one in live:
                if one.group == group and isinstance(one, ViewDefinition):
                    shown = snapshot.view(one.name).scan()
                    said = difference(expected[one.name], pa.Table.from_batches(shown.stored_batches(), shown._schema))
                    if said:
                        found[one.name] = f"{one.sql}\n{said}"
    return found


def _recomputed(db: Database, snapshot: Snapshot, group: str, plain: Mapping[str, str]) -> dict[str, pa.Table]:
    held, definitions = snapshot._held, snapshot._definitions
    frontier = held.committed(group).frontier
    found: dict[str, pa.Table] = {}
    with emptied() as connection:
        for table in definitions.tables():
            rows = rows_at(db.store, held, table, Chunk(table.name), frontier)
            shown = rows.select([column.name for column in table.schema.shown])
            register(connection, "incoming", shown)
            connection.execute(f'CREATE TABLE "{table.name}" AS SELECT * FROM incoming')
            unregister(connection, "incoming", shown)
        for one in definitions._in_reading_order():
            if isinstance(one, ViewDefinition | NamedQuery):
                connection.execute(f'CREATE TABLE "{one.name}" AS {plain.get(one.name, one.sql)}')
                found[one.name] = content(connection, one.name)
            else:
                assert isinstance(one, IndexDefinition)
    return found
