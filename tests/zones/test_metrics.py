"""Figures of epochs on Spark: the same as those of the same epochs in one process, and counted once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import everview
from everview.client.database import Database
from everview.maintain.figures import EpochFigures
from everview.maintain.quarantined import QuarantinedItem, quarantined_items
from everview.store.embedded import blocks
from everview.store.embedded.environment import Transaction
from everview.store.embedded.layout import LOG
from everview.zones.pipeline import Pipeline

PATIENCE = 120.0
SETUP = """
    CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, x INTEGER, s VARCHAR);
    CREATE MATERIALIZED VIEW totals AS SELECT k, sum(x) AS total, max(x) AS most FROM a GROUP BY k;
    CREATE MATERIALIZED VIEW over10 AS SELECT id, x FROM a WHERE x > 10;
    CREATE MATERIALIZED VIEW over20 AS SELECT id, x FROM a WHERE x > 20;
    CREATE MATERIALIZED VIEW many AS SELECT count(*) AS n FROM totals WHERE total > 20;
    CREATE MATERIALIZED VIEW numbers AS SELECT id, CAST(s AS INTEGER) AS n FROM a;
    CREATE MATERIALIZED VIEW most AS SELECT k, CAST(max(s) AS INTEGER) AS n FROM a GROUP BY k;
"""
Write = tuple[int, int, int, str] | int
"""A row to put, or the id of one to delete."""
EPOCHS: tuple[list[Write], ...] = (
    [(100, 1, 1, "1")],  # the entry of which is damaged
    [(1, 1, 15, "1"), (2, 1, 25, "2"), (3, 2, 8, "three"), (4, 3, 30, "four"), (5, 3, 5, "5")],
    [(1, 1, 9, "1"), (1, 1, 7, "1"), 2],
    [(10 + i, i % 5, i, str(i)) for i in range(40)],
    [(6, 2, 5, "six"), (7, 2, 5, "six")],
    [(3, 3, 8, "3"), 5],
    [(10 + i, i % 5, i, str(i)) for i in range(40)],
    [10 + i for i in range(30)],
)
"""The batches of the history, each of which is an epoch. Some bring rows and groups without a value."""


def lived(path: Path, caught_up: Callable[[Database], None]) -> Database:
    """A database after the history."""
    db = everview.open(path, durability="none", map_size=1 << 28)
    db.sql(SETUP)
    db.flush()
    for number, writes in enumerate(EPOCHS):
        with db.batch() as batch:
            table = batch.table("a")
            for one in writes:
                if isinstance(one, int):
                    table.delete(one)
                else:
                    table.put(dict(zip(("id", "k", "x", "s"), one, strict=True)))
        if number == 0:
            damage(db)
        caught_up(db)
    return db


def damage(db: Database) -> None:
    """Make the one block of the logs unreadable."""

    def work(transaction: Transaction) -> None:
        cursor = transaction.cursor()
        assert cursor.set_range(LOG) and cursor.key().startswith(LOG)
        block = bytearray(cursor.value())
        block[blocks.HEADER.size] ^= 1
        transaction.put(cursor.key(), bytes(block))

    handle = db.store._handle  # type: ignore[attr-defined]
    handle.update(handle.base, work)


def figures(db: Database) -> list[EpochFigures]:
    views = db._context.views
    return [one for one in views.metrics.last(db.store.views, "main") if one.operations]


def quarantine(db: Database) -> list[QuarantinedItem]:
    with db.store.snapshot() as snapshot:
        found = quarantined_items(db.catalog, db._context.views.plans, "main", snapshot)
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Database]]:
    """The same history in this process, and on Spark with three view servers."""
    path = tmp_path_factory.mktemp("both")
    alone = lived(path / "alone", Database.flush)
    pipeline = Pipeline(path / "spark", spark=spark, in_driver=0, servers=3)
    started: list[Pipeline] = []

    def caught_up(db: Database) -> None:
        if not started:
            started.append(pipeline.start())
        pipeline.drain(timeout=PATIENCE)

    with alone, lived(path / "spark", caught_up) as there:
        pipeline.stop()
        yield alone, there


def test_epochs_count_the_same_in_one_process_and_on_spark(both: tuple[Database, Database]) -> None:
    alone, there = map(figures, both)
    assert len(alone) == len(there) == len(EPOCHS)
    for one, other in zip(alone, there, strict=True):
        for name in (
            "epoch",
            "operations",
            "changes",
            "updates",
            "views",
            "quarantined",
            "unreadable",
            "written",
            "lag",
        ):
            assert getattr(one, name) == getattr(other, name), (one.epoch, name)
    sums = [db._context.views.metrics.sums(db.store.views, "main") for db in both]
    assert sums[0] is not None and sums[1] is not None
    assert sums[0].views.rows.tobytes() == sums[1].views.rows.tobytes()


def test_the_history_is_what_it_should_be(both: tuple[Database, Database]) -> None:
    alone, _ = map(figures, both)
    damaged, first, second = alone[:3]
    assert (damaged.operations, damaged.changes, damaged.unreadable, damaged.updates) == (1, 0, 1, (0, 0, 0))
    assert (first.operations, first.changes, first.unreadable) == (5, 5, 0)
    # 'three' and 'four' are no numbers, and the last texts where k is 2 and 3
    assert first.views == {
        "totals": (3, 0, 0),
        "over10": (3, 0, 0),
        "over20": (2, 0, 0),
        "many": (0, 1, 0),
        "numbers": (3, 0, 0),
        "most": (1, 0, 0),
    }
    assert first.quarantined == 4
    # of 1 the last row counts
    assert (second.operations, second.changes) == (3, 3)
    assert second.views == {
        "totals": (0, 1, 0),
        "over10": (0, 0, 2),
        "over20": (0, 0, 1),
        "many": (0, 1, 0),
        "numbers": (0, 0, 1),
        "most": (0, 1, 0),
    }
    # the same rows once more
    assert alone[6].changes == 0 and alone[6].views == {}


def test_figures_of_spark_contain_servers_stages_and_bytes(both: tuple[Database, Database]) -> None:
    _, there = map(figures, both)
    for one in there:
        assert one.servers == 3 and one.waited is not None and one.staleness is not None
        assert [stage.stage for stage in one.stages] == list(range(1, len(one.stages) + 1))
        assert all(stage.tasks >= 1 for stage in one.stages)
        assert one.waited <= one.seconds
    assert there[1].shuffled > 0 and len(there[1].stages) > 2
    assert there[-1].commit is not None and there[-1].predicted is not None


def test_quarantined_rows_are_recorded_as_in_one_process(both: tuple[Database, Database]) -> None:
    alone, there = map(quarantine, both)
    assert {one.what for one in alone} == {"row", "log entry"}
    assert len({one.frontier for one in alone}) == 4, "of several epochs"
    assert alone == there, "with the same epochs, frontiers, positions and counts"
