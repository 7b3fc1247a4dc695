"""Views of every kind, and states of every kind below them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection

import everview
from everview.operators.view import StoredView
from tests.check.damage import plan_of
from tests.client.kinds import TABLES, VIEWS, write
from tests.oracle.maintained import bag

MORE = {
    "tied": "SELECT id, x FROM a ORDER BY x LIMIT 3",
    "first_seen": "SELECT k, first(s) AS s, any_value(s) AS any_s, list(x) AS xs FROM a GROUP BY k",
    "first_kept": "SELECT k, any_value(s) FILTER (WHERE x > 2) AS s, median(x) AS m FROM a GROUP BY CUBE (k)",
    "both": "SELECT a.id, b.y FROM a JOIN b ON a.k = b.k ORDER BY a.x LIMIT 4",
    "with_ties": "SELECT id, x FROM a ORDER BY x LIMIT 2 WITH TIES",
    "moving": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY x) AS n, lag(s) OVER (ORDER BY x) AS s FROM a",
    "exactly": "SELECT a.k, sum(b.y) FILTER (WHERE a.x > 2) AS total FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    "known": "SELECT id, k FROM a WHERE k IN (SELECT k FROM b WHERE y > 0)",
    "paths": (
        "WITH RECURSIVE r AS (SELECT id, k FROM a WHERE k = 1 UNION SELECT a.id, a.k FROM a JOIN r ON a.k = r.id)"
        " SELECT id FROM r"
    ),
}
INDEXES = {"a_by_x": "a (x)", "grouped_by_n": "grouped (n)"}


FEW = ("picked", "grouped", "floats", "joined", "different", "best", "above", "over_1", "over_2")


def open_shop(db: everview.Database, names: Collection[str] | None = None) -> None:
    """Views of every kind in the main group, or those with these names, filled, in one build."""
    db.sql(TABLES)
    rng = random.Random(5)
    write(db, rng, 60)
    with db.store.lease("maintenance"):
        for name, query in (VIEWS | MORE).items():
            if names is None or name in names:
                db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for name, on in INDEXES.items():
            db.sql(f"CREATE INDEX {name} ON {on}")
    db.flush()


def shown(db: everview.Database) -> dict[str, Counter[tuple[object, ...]]]:
    """The rows of every view and index of the main group."""
    _, bound = plan_of(db)
    with db.store.snapshot() as snapshot:
        epoch = snapshot.committed("main").epoch
        return {name: bag(StoredView(bound, name).rows(snapshot, epoch)) for name in bound.plan.by_name}
