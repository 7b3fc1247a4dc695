"""A store whose views another version of Everview has planned."""

from __future__ import annotations

from pathlib import Path

import pytest

import everview
from everview.plan import rules
from everview.plan.rules.join_dimensions import join_dimensions

CHAIN = "FROM c, o, l, n WHERE c.id = o.x AND o.id = l.x AND c.x = n.id"


def write(db: everview.Database, seed: int) -> None:
    for table in ("c", "o", "l", "n"):
        rows = [{"id": id, "x": (7 * id + seed) % 40, "y": id * seed % 11} for id in range(40)]
        db.table(table).put_many(rows)
    db.sql(f"DELETE FROM c WHERE id % 5 = {seed % 5}")
    db.flush()


def assert_right(db: everview.Database) -> None:
    found = db.verify(state=True)
    assert found.right and not found.undecided, str(found)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two views over a chain of joins, planned without a rule that there is now."""
    path = tmp_path / "store"
    with pytest.MonkeyPatch.context() as patch, everview.open(path) as db:
        patch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule is not join_dimensions))
        for table in ("c", "o", "l", "n"):
            db.sql(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x INTEGER, y INTEGER)")
        db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT l.id, o.y AS oy, c.y AS cy, n.y AS ny {CHAIN}")
        db.sql(f"CREATE MATERIALIZED VIEW w AS SELECT n.y, count(*) AS k {CHAIN} GROUP BY n.y")
        write(db, 3)
    return path


def test_views_are_maintained_as_they_were_planned_and_rebuilt_before_others_join(store: Path) -> None:
    with everview.open(store) as db:
        before = {table.id for one in db.catalog.views() for table in one.state}
        write(db, 4)
        assert_right(db)
        assert {table.id for one in db.catalog.views() for table in one.state} == before, "nothing was built"
        db.sql("CREATE MATERIALIZED VIEW u AS SELECT o.id, c.y FROM o JOIN c ON o.x = c.id")
        write(db, 6)
        assert_right(db)
        assert not before & {table.id for table in db.catalog.view("v").state[1:]}, "it was rebuilt"


def test_views_that_go_leave_the_others_as_they_were_planned(store: Path) -> None:
    with everview.open(store) as db:
        db.sql("DROP MATERIALIZED VIEW w")
        write(db, 5)
        assert db.verify().right
