"""Histories that violate each level of paper 002, made by hand and by a maintainer."""

from __future__ import annotations

import random

import pytest

import everview
from everview.change.frontier import Frontier
from everview.check.levels import BaseState, Judgement, Level, ObservedState, judge
from everview.errors import DefinitionError, InputError
from tests.check.damage import Damage, damage_by, held
from tests.client.kinds import TABLES, write

COUNTS = [BaseState(0, {}), BaseState(1, {"a": 1}), BaseState(2, {"a": 1, "b": 1}), BaseState(3, {"b": 1})]
"""A row comes, another one comes, the first goes."""


def seen(*states: dict[str, int]) -> Judgement:
    return judge(COUNTS, [ObservedState(state) for state in states])


@pytest.mark.parametrize(
    ("states", "level", "why"),
    [
        ([{}, {"a": 1}, {"a": 1, "b": 1}, {"b": 1}], Level.COMPLETE, None),
        ([{}, {"b": 1}], Level.STRONG, "not complete: record a never shows 1, as it should after 1"),
        ([{"b": 1}], Level.STRONG, "not complete: record a never shows 1, as it should after 1"),
        (
            [{}, {"a": 1}, {"b": 1, "a": 1}, {"a": 1}, {"b": 1}],
            Level.WEAK,
            "not strong: record b shows 1 in view state 2 and nothing in view state 3, "
            "and no base states have them in that order",
        ),
        (
            [{}, {"a": 2}, {"b": 1}],
            Level.CONVERGENCE,
            "not weak: record a shows 2 in view state 1, and no base state has it",
        ),
        (
            [{}, {"c": 1}, {"b": 1}],
            Level.CONVERGENCE,
            "not weak: record c shows 1 in view state 1, and no base state has it",
        ),
        ([{}, {"a": 1}], Level.NONE, "not convergence: record b shows nothing in the end, and should show 1"),
        (
            [{}, {"a": 1, "b": 1}],
            Level.NONE,
            "not convergence: record a shows 1 in the end, and should show nothing",
        ),
    ],
)
def test_by_hand(states: list[dict[str, int]], level: Level, why: str | None) -> None:
    found = seen(*states)
    assert found.level is level
    assert (None if found.violation is None else str(found.violation)) == why


def test_records_are_judged_one_by_one_and_claims_together() -> None:
    """Both records are right by themselves; no base state has them together."""
    views = [ObservedState({}, claims=0), ObservedState({"b": 1, "a": 1}, claims=1), ObservedState({"b": 1}, claims=3)]
    found = judge(COUNTS, views)
    assert found.level is Level.COMPLETE and found.unfounded == (1,)


def test_base_states_that_are_in_no_order_say_nothing_about_order() -> None:
    base = [
        BaseState(Frontier({}), {"r": 0}),
        BaseState(Frontier({1: 1}), {"r": 1}),
        BaseState(Frontier({2: 1}), {"r": 2}),
        BaseState(Frontier({1: 1, 2: 1}), {"r": 3}),
    ]
    rows = [{"r": number} for number in (0, 1, 2, 3)]
    assert judge(base, [ObservedState(row) for row in rows]).level is Level.WEAK
    assert judge(base, [ObservedState(row) for row in rows if row["r"] != 2]).level is Level.STRONG
    with pytest.raises(InputError, match="numbered"):
        judge([*base, BaseState(7, {"r": 3})], [ObservedState(row) for row in rows])
    with pytest.raises(InputError, match="at least one"):
        judge(base, [])


VIEWS = {
    "totals": "SELECT k, count(*) AS n, sum(x) AS total FROM a GROUP BY k",
    "pairs": "SELECT a.id AS aid, b.id AS bid, y FROM a LEFT JOIN b USING (k)",
    "texts": "SELECT s FROM a",
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_recorded_run(db: everview.Database, name: str) -> None:
    """Every epoch is a state of its own frontier, so a view is strong; complete if every write has one."""
    db.sql(TABLES + f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    rng = random.Random(3)
    with db.recording(name) as each:
        for _ in range(8):
            write(db, rng, 1)
            each.wrote()
            db.flush()
            each.look()
    assert (each.judgement.level, each.judgement.violation, each.judgement.unfounded) == (Level.COMPLETE, None, ())
    with db.recording(name) as some:
        for number in range(10):
            write(db, rng, 1)
            some.wrote()
            if number % 5 == 4:
                db.flush()
                some.look()
    assert some.judgement.level >= Level.STRONG and some.judgement.unfounded == ()
    with db.recording(name) as late:
        with pytest.raises(DefinitionError, match="has ended"):
            late.judgement  # noqa: B018
        db.sql("DELETE FROM a; INSERT INTO a VALUES (1, 1, 1, 'new')")
    assert late.judgement.level is Level.NONE and late.judgement.unfounded == ()


def test_a_damaged_run(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
    with db.recording("v") as history:
        db.sql("INSERT INTO t VALUES (1, 1); FLUSH")
        history.look()
        ((state, records),) = held(db).items()
        db.sql("INSERT INTO t VALUES (1, 2); FLUSH")
        history.look()
        damage_by(db, {state: Damage(changed=records)})
        history.look()
        db.rebuild("v")
    assert history.judgement.level is Level.WEAK and history.judgement.unfounded == (3,)
    assert str(history.judgement.violation).startswith("not strong: record (1,) shows (1, 2) in view state 2")
