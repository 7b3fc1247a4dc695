"""DISTINCT: rows appear once, and go with their last copy."""

from __future__ import annotations

import math

import pytest

from everview.change.schema import Schema
from everview.errors import DamagedEntryError
from everview.plan.maintenance.operator_definitions import DistinctOperator
from tests.operators.histories import history, maintained, taken
from tests.oracle.maintained import bag

TABLE = Schema.of({"id": "BIGINT", "k": "INTEGER", "x": "DOUBLE", "t": "VARCHAR", "l": "DOUBLE[]"}, key=["id"])
ROWS = {
    "a": {
        "id": range(8),
        "k": [None, 1, 2],
        "x": [None, 0.0, -0.0, 1.5, math.nan, math.inf],
        "t": [None, "", "x" * 500, "x" * 500 + "y", "x\0y"],
        "l": [None, [], [0.0], [-0.0], [1.0, None]],
    }
}


def test_rows_of_any_values_appear_once() -> None:
    views = {
        "one": "SELECT DISTINCT k FROM a",
        "floats": "SELECT DISTINCT x FROM a",
        "long": "SELECT DISTINCT t, k FROM a",
        "lists": "SELECT DISTINCT l, x FROM a",
        "computed": "SELECT DISTINCT k + 1 AS k, k AS same, k AS again FROM a",
        "of_distinct": "SELECT DISTINCT k FROM (SELECT DISTINCT k, x FROM a)",
        "counted": "SELECT k, count(DISTINCT x) AS n FROM a GROUP BY k",
    }
    with maintained({"a": TABLE}, views) as m:
        taken(m, history(ROWS, seed=2))


def test_views_that_differ_in_constants_count_their_own_rows() -> None:
    views = {f"v{n}": f"SELECT DISTINCT k FROM a WHERE id > {n}" for n in (1, 3, 5)}
    with maintained({"a": TABLE}, views) as m:
        taken(m, history(ROWS, seed=3))


def test_what_goes_is_what_came_though_equal_values_look_different() -> None:
    views = {"zeros": "SELECT DISTINCT x FROM a", "met": "SELECT a.id, z.x FROM a JOIN zeros AS z ON a.x = z.x"}
    with maintained({"a": TABLE}, views) as m:
        a = m.table("a")
        a.put({"id": 1, "x": -0.0})
        a.put({"id": 2, "x": 0.0})
        m.epoch()
        a.delete(1)
        m.epoch()
        m.check()
        a.put({"id": 2, "x": -0.0})
        m.epoch()
        m.check()
        a.delete(2)
        m.epoch()
        m.check()
        assert len(m.view("zeros")) == len(m.view("met")) == 0


def test_a_row_whose_expression_failed_is_quarantined_and_comes_back() -> None:
    with maintained({"a": TABLE}, {"v": "SELECT DISTINCT CAST(t AS INTEGER) AS n FROM a"}) as m:
        a = m.table("a")
        a.put({"id": 1, "t": "7"})
        a.put({"id": 2, "t": "seven"})
        m.epoch()
        assert bag(m.view("v")) == {(7,): 1}
        assert len(m.quarantine()) == 1
        a.put({"id": 2, "t": "8"})
        m.epoch()
        m.check()
        assert not m.quarantine()


def test_more_rows_going_than_were_there_is_damage() -> None:
    with maintained({"a": TABLE}, {"v": "SELECT DISTINCT k FROM a"}) as m:
        m.table("a").put({"id": 1, "k": 5})
        m.epoch()
        m.table("a").delete(1)
        (step,) = [one for one in m.plan.steps if isinstance(one.operator, DistinctOperator)]
        m.store.views.drop(m.later.state_table(step))
        with pytest.raises(DamagedEntryError, match=r"more rows .* 5} go than were there"):
            m.epoch()
