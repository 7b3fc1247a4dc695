"""A shop: orders come, change and go, and a view keeps the totals of each customer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from hypothesis import strategies as st

from everview.change.entries import KEY
from everview.cli.recompute import differences, recomputed
from everview.client.database import Database
from everview.client.database import open as open_database
from everview.store.contract import Begun, Commit, Row, Store
from everview.zones.blocks import REPORT, Block
from everview.zones.distributor import Distributor
from everview.zones.reports import Report, require_whole, total
from everview.zones.view_server import ViewServer
from everview.zones.views import create_aggregate_view, find_view, read_view

COLUMNS = {"id": "BIGINT", "customer": "INTEGER", "amount": "DECIMAL(12,2)", "note": "VARCHAR"}
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


def open_shop(path: Path, nodes: int = 4, shards: int = 4) -> Database:
    db = open_database(path, durability="none", nodes=nodes, shards=shards)
    if not db.tables():
        db.create_table("orders", COLUMNS, key=["id"])
        create_aggregate_view(
            db.store, "totals", "orders", group_by=["customer"], count="orders", sums={"total": "amount"}
        )
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


def assert_view_is_right(store: Store, view: str = "totals") -> Commit:
    """The view equals its recomputation from the base rows, of which it has seen all."""
    plan = find_view(store, view)
    with store.views.snapshot() as snapshot:
        commit, shown = read_view(snapshot, plan)
    assert commit.frontier == store.log.latest()
    assert differences(recomputed(store.table(plan.table), plan.sql), shown) == []
    return commit


def distribute(store: Store, begun: Begun, slices: list[tuple], servers: int) -> tuple[list[Block], Report]:
    """Zone 1 by hand: the blocks of all tasks, and what they report."""
    task = Distributor("", begun.epoch, begun.plan, servers)
    blocks = [block for share in slices for block in task.run(store, share)]
    reports = [Report.from_json(block.content) for block in blocks if block.subject == REPORT]
    return [block for block in blocks if block.subject != REPORT], total(reports)


def serve(store: Store, begun: Begun, blocks: list[Block], server: int) -> None:
    """One view server by hand."""
    mine: dict[int, list] = {}
    for block in blocks:
        if block.server == server:
            assert block.table.column_names[0] == KEY
            mine.setdefault(block.subject, []).append(block.table)
    ViewServer("", begun.epoch, begun.base, begun.plan).run(store, mine)


def finish(store: Store, begun: Begun, slices: list[tuple], servers: int) -> None:
    """The whole epoch by hand, as the driver runs it on Spark."""
    blocks, report = distribute(store, begun, slices, servers)
    for server in range(servers):
        serve(store, begun, blocks, server)
    require_whole(begun, report.slices)
    store.views.commit(begun.group, begun.epoch)
    store.views.sweep(begun.group)
