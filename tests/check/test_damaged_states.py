"""Verify names exactly what was damaged in the tables that maintenance remembers things in."""

from __future__ import annotations

import random

import everview
from everview.check.report import Verdict
from everview.plan.maintenance import Role
from tests.check.damage import Damage, damage, damage_by, held, plan_of, states_of
from tests.check.shop import open_shop
from tests.client.kinds import write


def test_missing_extra_and_changed_entries_in_every_kind_of_state(db: everview.Database) -> None:
    open_shop(db)
    earlier = held(db)
    write(db, random.Random(8), 60)
    db.flush()
    assert db.verify(state=True).right
    _, bound = plan_of(db)
    states = states_of(bound)
    assert {state.role for state, _ in states.values()} == set(Role) - {Role.DELTA}
    done = damage(db, earlier, {name for name, (state, _) in states.items() if state.role is not Role.VIEW})
    report = db.verify(state=True)
    found = {view.name.partition(" (")[0]: view for view in report.views if view.kind == "state"}
    for name, (state, _) in states.items():
        what, view = done.get(name, Damage()), found[state.name]
        counts = (view.missing, view.extra, view.differing)
        assert counts == (len(what.missing), len(what.extra), len(what.changed)), view
        assert {one.kind for one in view.first} == {
            kind for kind, count in zip(("missing", "extra", "differing"), counts, strict=True) if count
        }
        assert view.verdict is (Verdict.WRONG if any(counts) else Verdict.RIGHT)
    assert all(view.verdict is Verdict.RIGHT for view in report.views if view.kind == "view")
    assert set(report.to_rebuild) >= {"grouped", "joined", "ranked", "different", "a_by_x"}
    (total,) = [one for one in found["PRE-AGGREGATION a by k"].first if one.kind == "differing"]
    assert total.shown != total.expected and "k" in " ".join(total.key)


def test_states_of_logs_without_old_rows_and_quarantined_rows(tmp_path: object) -> None:
    with everview.open(f"{tmp_path}/store", durability="none", map_size=1 << 30, before_images=False) as db:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR, g INTEGER)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, CAST(s AS INTEGER) AS n FROM t")
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT g, max(s) AS s FROM t GROUP BY g")
        db.sql("INSERT INTO t VALUES (1, '1', 1), (2, 'two', 1), (3, '3', 2); FLUSH")
        earlier = held(db)
        db.sql(
            "UPDATE t SET s = 'three' WHERE id = 3; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (4, '4', 4); FLUSH"
        )
        report = db.verify(state=True)
        assert report.right and report.view("v").quarantined == 2
        deltas = {name for name, (state, _) in states_of(plan_of(db)[1]).items() if state.role is Role.DELTA}
        damage(db, earlier, deltas)
        (delta,) = db.verify(state=True).wrong
        assert (delta.missing, delta.extra, delta.differing) == (1, 1, 1) and delta.views == ("v", "w")


def test_only_states_of_the_views_that_are_asked_for(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER); INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT DISTINCT g FROM t")
    _, bound = plan_of(db)
    counted = next(name for name, (state, _) in states_of(bound).items() if state.role is Role.PRE_AGGREGATION)
    key = next(iter(held(db)[counted]))
    damage_by(db, {counted: Damage(missing={key: b""})})
    assert db.verify("w", state=True).right
    (wrong,) = db.verify("v", state=True).wrong
    assert wrong.missing == 1 and wrong.views == ("v",)
