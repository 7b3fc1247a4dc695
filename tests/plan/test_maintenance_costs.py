"""What a change costs each view."""

from __future__ import annotations

import pytest

from everview.change.types import BIGINT
from everview.plan.expressions import Field
from everview.plan.maintenance import ViewInput, costs, notices, plan_group
from everview.plan.maintenance.costs import Amount
from everview.plan.relations import Reevaluate, Relation, Way
from tests.plan.relation_texts import call, grouped, joined, of, scan, select, where

A, B = scan("a"), scan("b")
Row = tuple[str, str, str, str, int]


def table(relation: Relation, before_images: bool = True) -> list[Row]:
    plan = plan_group([ViewInput("v", relation)], before_images)
    return [(c.table, c.change.value, str(c.reads), str(c.writes), c.shuffles) for c in costs(plan, "v")]


def test_a_selection_is_written_and_nothing_is_read() -> None:
    relation = select(where(A, '"a.c1" > 3'), k="a.k")
    assert {row[2:] for row in table(relation)} == {("0", "1", 0)}
    assert {row[2:] for row in table(relation, before_images=False)} == {("1", "2", 0)}


def test_a_group_is_one_read_and_two_where_a_row_moves() -> None:
    assert table(grouped(A, ["a.c1"], call("s", "sum", of(A, "a.c2")))) == [
        ("a", "insert", "1", "2", 1),
        ("a", "update", "1", "2", 1),
        ("a", "update of a key", "2", "4", 1),
        ("a", "delete", "1", "2", 1),
    ]


def test_a_join_costs_per_match() -> None:
    rows = table(joined(A, B, {"a.c1": "b.c1"}))
    assert rows[0] == ("a", "insert", "2", "1 + m", 2)
    assert rows[2] == ("a", "update of a key", "4", "2 + 2m", 2)
    assert [row[0] for row in rows] == ["a"] * 4 + ["b"] * 4


def test_a_group_that_is_evaluated_again_is_read_whole() -> None:
    plan = plan_group([ViewInput("v", grouped(A, ["a.c1"], call("l", "list", of(A, "a.c2"), Way.GENERAL)))])
    assert {cost.whole for cost in costs(plan, "v")} == {("PARTITION a by c1",)}
    assert notices(plan, "v") == ()


def test_what_nothing_bounds_is_noticed() -> None:
    query = "SELECT count(*) AS x FROM in0, in1 WHERE in0.k < in1.l"
    relation = Reevaluate((A, B), query, (Field("x", BIGINT),), ("x",), reason="a join without equality")
    plan = plan_group([ViewInput("v", relation), ViewInput("w", grouped(A, ["a.c1"], call("n", "count")))])
    assert notices(plan, "v") == (
        f"each change evaluates {query} again over all rows of a and b: a join without equality",
    )
    assert notices(plan, "w") == ()


@pytest.mark.parametrize(
    ("amount", "text"), [(Amount(), "0"), (Amount(2), "2"), (Amount(0, 1), "m"), (Amount(2, 3), "2 + 3m")]
)
def test_amounts_in_words(amount: Amount, text: str) -> None:
    assert str(amount) == text
