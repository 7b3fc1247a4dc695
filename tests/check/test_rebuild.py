"""A rebuild heals views and what lies below them, while the others go on."""

from __future__ import annotations

import random
import threading

import pytest

import everview
from everview.check.report import Verdict
from everview.errors import DamagedEntryError, DefinitionError, LogTrimmedError
from everview.maintain.builds import builds_of
from everview.maintain.rebuilding import asked_rebuilds
from everview.plan.maintenance import Role
from tests.check.damage import Damage, damage, damage_aside, damage_by, held, plan_of, states_of
from tests.check.shop import FEW, open_shop
from tests.client.kinds import write


def test_everything_that_was_damaged_is_healed(db: everview.Database) -> None:
    open_shop(db)
    earlier = held(db)
    write(db, random.Random(8), 60)
    db.flush()
    damage(db, earlier)
    report = db.verify(state=True)
    assert len(report.wrong) > 60
    db.rebuild(*report.to_rebuild)
    assert db.verify(state=True).right and not asked_rebuilds(db.store) and not builds_of(db.store)
    write(db, random.Random(9), 60)
    db.flush()
    assert db.verify(state=True).right


def test_a_shared_state_is_healed_for_all_that_need_it(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, n INTEGER); INSERT INTO t VALUES (1, 1, 5), (2, 1, 6)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS c FROM t GROUP BY g")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT g, sum(n) AS s FROM t GROUP BY g")
    earlier = held(db)
    db.sql("INSERT INTO t VALUES (3, 1, 7), (4, 2, 1); FLUSH")
    state = next(name for name, (one, _) in states_of(plan_of(db)[1]).items() if one.role is Role.PRE_AGGREGATION)
    (key,) = earlier[state]
    damage_by(db, {state: Damage(changed={key: earlier[state][key]})})
    assert db.verify().right
    assert db.verify(state=True).to_rebuild == ("v", "w")
    before = plan_of(db)[1].states
    db.rebuild("v")
    after = plan_of(db)[1].states
    assert before[state].id != after[state].id
    assert db.verify(state=True).right
    db.sql("INSERT INTO t VALUES (5, 1, 7); FLUSH")
    assert db.view("w").get(1) == {"g": 1, "s": 25} and db.verify(state=True).right


def test_old_rows_are_read_until_the_new_ones_are_there(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 1), (2, 2)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t; CREATE MATERIALIZED VIEW w AS SELECT sum(n) AS n FROM t")
    (state,) = [plan.states[0].fingerprint for plan in [plan_of(db)[1].plan.step(plan_of(db)[1].plan.view("v").step)]]
    (one, two) = held(db)[state].items()
    damage_by(db, {state: Damage(missing=dict([one]))})
    handle = db.view("v")
    with db.snapshot() as snapshot:
        with db.store.lease("maintenance"):
            rebuilding = threading.Thread(target=db.rebuild, args=("v",))
            rebuilding.start()
            while not asked_rebuilds(db.store):
                pass
            assert handle.get(1) is None and handle.get(2) == {"id": 2, "n": 2} and two
            assert db.view("w").get() == {"n": 3}
        rebuilding.join()
        assert handle.get(1) == {"id": 1, "n": 1}
        assert snapshot.view("v").get(1) is None  # a snapshot stays what it was
    assert db.verify(state=True).right


def test_while_somebody_writes_and_the_views_are_maintained(db: everview.Database) -> None:
    open_shop(db, FEW)
    earlier = held(db)
    write(db, random.Random(8), 40)
    db.flush()
    damage(db, earlier, {name for name, (one, _) in states_of(plan_of(db)[1]).items() if one.role is Role.VIEW})
    over = threading.Event()

    def trade() -> None:
        rng = random.Random(1)
        while not over.is_set():
            write(db, rng, 2)

    writer = threading.Thread(target=trade)
    with db.maintain(spark=False) as maintaining:
        writer.start()
        try:
            wrong = db.verify().to_rebuild
            assert len(wrong) > 7
            db.rebuild(*wrong, timeout=120)
            assert db.verify().right
        finally:
            over.set()
            writer.join()
        maintaining.drain(timeout=60)
        assert db.verify(state=True).right


def test_damage_that_stops_the_group(db: everview.Database) -> None:
    """Its epochs fail, so all of it is rebuilt, and goes on from there."""
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER); INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT DISTINCT g FROM t; CREATE INDEX i ON w (g)")
    state = next(name for name, (one, _) in states_of(plan_of(db)[1]).items() if one.role is Role.PRE_AGGREGATION)
    damage_by(db, {state: Damage(missing=held(db)[state])})
    db.sql("DELETE FROM t WHERE g = 1")
    with pytest.raises(DamagedEntryError, match="rebuild the view"):
        db.flush()
    db.rebuild("v")
    db.flush()
    assert db.view("v").scan().rows() == [(2, 1)] and db.verify(state=True).right
    db.sql("INSERT INTO t VALUES (7, 7); FLUSH")
    assert db.verify(state=True).right


def test_a_group_whose_log_was_trimmed(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER); INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
    db.sql("INSERT INTO t VALUES (4, 2)")
    db.store.log.trim(db.store.log.latest())
    db.sql("INSERT INTO t VALUES (5, 2)")
    with pytest.raises(LogTrimmedError, match="cannot go on"):
        db.flush()
    db.rebuild("v")
    assert db.view("v").get(2) == {"g": 2, "n": 3} and db.verify().right
    db.sql("INSERT INTO t VALUES (6, 2); FLUSH")
    assert db.view("v").get(2) == {"g": 2, "n": 4}


def test_the_quarantine_equals_that_of_a_rebuild(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR); INSERT INTO t VALUES (1, '1'), (2, 'two'), (3, 'x')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, CAST(s AS INTEGER) AS n FROM t")
    damage_aside(db)
    (wrong,) = db.verify(state=True).wrong
    assert (wrong.name, wrong.missing, wrong.extra) == ("QUARANTINED", 1, 1)
    db.rebuild("v")
    assert db.verify(state=True).right and db.verify().view("v").quarantined == 2
    assert db.verify().view("v").verdict is Verdict.RIGHT


def test_views_that_go_meanwhile_need_no_rebuild(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g FROM t; CREATE MATERIALIZED VIEW w AS SELECT id FROM t")
    with db.store.lease("maintenance"):
        rebuilding = threading.Thread(target=db.rebuild, args=("v", "w"))
        rebuilding.start()
        while not asked_rebuilds(db.store):
            pass
        db.sql("DROP MATERIALIZED VIEW v; CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT g, id FROM t")
        with pytest.raises(DefinitionError, match="not built yet"):
            db.rebuild("w")
    rebuilding.join()
    db.flush()
    assert db.verify().right and not asked_rebuilds(db.store)
