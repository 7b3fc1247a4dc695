"""UNION, INTERSECT, EXCEPT, with and without ALL: as many copies as SQL says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from everview.change.schema import Schema
from tests.operators.histories import history, maintained, taken
from tests.oracle.maintained import bag

A = Schema.of({"id": "BIGINT", "k": "INTEGER", "t": "VARCHAR"}, key=["id"])
B = Schema.of({"id": "BIGINT", "k": "BIGINT", "x": "DOUBLE"}, key=["id"])
TABLES = {"a": A, "b": B}
ROWS: dict[str, dict[str, Sequence[object]]] = {
    "a": {"id": range(8), "k": [None, 0, 1], "t": [None, "0", "1.5"]},
    "b": {"id": range(8), "k": [None, 0, 1], "x": [None, 0.0, -0.0, 1.5]},
}
OPERATIONS = ["UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]


def test_copies_follow_both_sides() -> None:
    views = {
        f"v{number}": f"SELECT k FROM a {operation} SELECT k FROM b" for number, operation in enumerate(OPERATIONS)
    }
    with maintained(TABLES, views) as m:
        taken(m, history(ROWS, seed=4, epochs=8))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sides_are_made_one_type_and_read_on(operation: str) -> None:
    views = {
        "v": f"SELECT k, CAST(t AS DOUBLE) AS x FROM a {operation} SELECT k, x FROM b",
        "twice": f"(SELECT k FROM v) {operation} (SELECT k FROM a)",
        "joined": "SELECT v.x, b.id FROM v JOIN b ON v.x = b.x",
    }
    with maintained(TABLES, views) as m:
        taken(m, history(ROWS, seed=5))


def test_views_that_differ_in_constants() -> None:
    views = {f"v{n}": f"SELECT k FROM a WHERE id > {n} EXCEPT ALL SELECT k FROM b" for n in (1, 4)}
    views |= {f"w{n}": f"SELECT k FROM a INTERSECT ALL SELECT k FROM b WHERE id > {n}" for n in (1, 4)}
    with maintained(TABLES, views) as m:
        taken(m, history(ROWS, seed=6))


def test_one_more_copy_is_one_more_row() -> None:
    with maintained(TABLES, {"v": "SELECT k FROM a EXCEPT ALL SELECT k FROM b"}) as m:
        for number in range(5):
            m.table("a").put({"id": number, "k": 7})
        m.epoch()
        m.table("b").put({"id": 1, "k": 7})
        m.table("b").put({"id": 2, "k": 7})
        outcome = m.epoch()
        assert bag(m.view("v")) == {(7,): 3}
        assert outcome.counts[m.plan.view("v").step] == 2


def test_a_row_that_cannot_be_cast_is_quarantined() -> None:
    with maintained(TABLES, {"v": "SELECT CAST(t AS DOUBLE) AS x FROM a INTERSECT SELECT x FROM b"}) as m:
        m.table("a").put({"id": 1, "t": "no number"})
        m.table("a").put({"id": 2, "t": "1.5"})
        m.table("b").put({"id": 1, "x": 1.5})
        m.epoch()
        assert bag(m.view("v")) == {(1.5,): 1}
        assert len(m.quarantine()) == 1
        m.table("a").delete(1)
        m.epoch()
        m.check()
        assert not m.quarantine()
