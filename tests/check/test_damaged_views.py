"""Verify names exactly the rows that were damaged, in views of every kind."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

import everview
from everview.check.report import Report, Verdict, ViewReport
from everview.errors import DefinitionError, UnknownObjectError
from tests.check.damage import Damage, damage, damage_by, held, plan_of
from tests.check.shop import open_shop, shown
from tests.client.kinds import write
from tests.oracle.maintained import comparable

Rows = Counter[tuple[object, ...]]


def view_states(db: everview.Database) -> set[str]:
    _, bound = plan_of(db)
    return {bound.plan.step(view.step).states[0].fingerprint for view in bound.plan.views}


def reported_rows(view: ViewReport, kind: str, part: str) -> Rows:
    """The rows of one kind of difference, as they are shown or should be."""
    return Counter(
        tuple(comparable(value) for value in (getattr(one, part) or {}).values())
        for one in view.first
        if one.kind == kind
    )


def assert_names(report: Report, before: dict[str, Rows], after: dict[str, Rows]) -> None:
    """What the report says of every view is the difference that the damage made."""
    for name, rows in before.items():
        view = report.view(name)
        lost, new = rows - after[name], after[name] - rows
        assert view.rows == after[name].total(), name
        assert view.missing + view.differing == lost.total(), view
        assert view.extra + view.differing == new.total(), view
        assert view.verdict is (Verdict.WRONG if lost or new else Verdict.RIGHT), view
        assert (
            reported_rows(view, "missing", "expected") <= lost
            and reported_rows(view, "missing", "expected").total() == view.missing
        )
        assert (
            reported_rows(view, "extra", "shown") <= new and reported_rows(view, "extra", "shown").total() == view.extra
        )
        for one in view.first:
            if one.kind == "differing":
                assert (
                    one.shown != one.expected and one.shown and one.expected and not one.shown.keys() & one.key.keys()
                )


def test_missing_extra_and_changed_rows_in_every_kind_of_view(db: everview.Database) -> None:
    open_shop(db)
    earlier = held(db)
    write(db, random.Random(8), 60)
    db.flush()
    assert db.verify().right and not db.verify().undecided
    before = shown(db)
    done = damage(db, earlier, view_states(db))
    report = db.verify()
    assert_names(report, before, shown(db))
    kinds = {kind: sum(bool(getattr(one, kind)) for one in done.values()) for kind in ("missing", "extra", "changed")}
    assert all(count > 15 for count in kinds.values()), kinds
    assert not report.right and len(report.wrong) > 25
    wrong = next(view for view in report.wrong if view.name == "grouped")
    assert wrong.differing == 1 and set(wrong.first[-1].key) == {"k"}
    assert json.loads(json.dumps(report.to_dict()))["right"] is False
    assert str(report).count("wrong at epoch") == len(report.wrong)


def test_views_that_are_right_while_rows_are_written_that_they_do_not_reflect(db: everview.Database) -> None:
    open_shop(db)
    rng = random.Random(3)
    for _ in range(2):
        write(db, rng, 20)
        db.flush()
        write(db, rng, 20)
        report = db.verify()
        assert report.right and not report.undecided, report


def test_lazy_views_and_views_on_views_are_judged_where_they_are(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER); INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    db.sql("CREATE MATERIALIZED VIEW slow WITH (refresh = 'lazy') AS SELECT g, count(*) AS n FROM t GROUP BY g")
    db.sql("CREATE MATERIALIZED VIEW above AS SELECT n, count(*) AS groups FROM slow GROUP BY n")
    db.sql("INSERT INTO t VALUES (4, 2)")
    with db.store.lease("maintenance"):  # nobody moves them
        report = db.verify()
        assert report.right and report.view("slow").group != report.view("above").group
    db.flush()
    assert db.verify("slow").right
    earlier = held(db)
    db.sql("INSERT INTO t VALUES (5, 3); FLUSH")
    damage(db, earlier, view_states(db))
    report = db.verify()
    assert report.view("slow").verdict is Verdict.RIGHT
    assert report.view("above").verdict is Verdict.WRONG  # judged against t, not against slow


def test_what_is_asked_for(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g FROM t; CREATE MATERIALIZED VIEW w AS SELECT id FROM t")
    db.sql("CREATE INDEX i ON t (g)")
    assert [view.name for view in db.verify().views] == ["v", "w", "i"]
    assert [(view.name, view.kind) for view in db.verify("i", "V").views] == [("v", "view"), ("i", "index")]
    with pytest.raises(UnknownObjectError, match="no view x"):
        db.verify("x")
    with pytest.raises(UnknownObjectError, match="t is a table"):
        db.verify("t")
    with db.store.lease("maintenance"):
        db.sql("CREATE MATERIALIZED VIEW u AS SELECT id FROM t")
        assert [view.name for view in db.verify().views] == ["v", "w", "i"]
        with pytest.raises(DefinitionError, match="view u is not built yet"):
            db.verify("u")


def test_all_differences_are_counted_and_some_are_named(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t SELECT range, range FROM range(100)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
    state = next(iter(view_states(db)))
    records = held(db)[state]
    damage_by(db, {state: Damage(missing=dict(list(records.items())[:70]))})
    view = db.verify(samples=5).view("v")
    assert (view.rows, view.missing, view.extra, view.differing) == (30, 70, 0, 0)
    assert [one.key for one in view.first] == [{"id": number} for number in range(5)]


def test_a_record_that_cannot_be_read(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR); INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT id, s FROM t; CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM t"
    )
    _, bound = plan_of(db)
    state = bound.plan.step(bound.plan.view("v").step).states[0].fingerprint
    key = next(iter(held(db)[state]))
    damage_by(db, {state: Damage(changed={key: b"\x01\x02"})})
    report = db.verify()
    assert report.view("w").verdict is Verdict.RIGHT
    assert report.view("v").verdict is Verdict.WRONG and "cannot be read" in report.view("v").reason


def test_rows_with_moments_that_python_has_not_are_named(db: everview.Database) -> None:
    db.sql("CREATE TABLE m (t TIMESTAMP PRIMARY KEY, d DATE, n INTEGER)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT t, d FROM m")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT d, list(t ORDER BY t) AS ts, count(*) AS c FROM m GROUP BY d")
    db.sql("INSERT INTO m VALUES ('infinity', '-infinity', 1), ('290000-01-01', 'infinity', 2)")
    db.flush()
    earlier = held(db)
    db.sql("INSERT INTO m VALUES ('-infinity', 'infinity', 3); UPDATE m SET d = '5000-01-01 (BC)' WHERE n = 1")
    db.flush()
    assert db.verify(state=True).right
    damage(db, earlier)
    report = db.verify(state=True)
    assert {view.name for view in report.views if view.verdict is Verdict.WRONG} >= {"v", "w", "VIEW v", "VIEW w"}
    assert "infinity" in str(report)
