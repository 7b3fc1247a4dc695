"""Views that differ only in constants are one family; fingerprints do not move when views come and go."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.types import BIGINT, DATE, DOUBLE, INTEGER, VARCHAR, decimal
from everview.plan.expressions import Field
from everview.plan.maintenance import MaintenancePlan, ViewInput, difference, plan_group
from everview.plan.maintenance.family import parameter_type, template_of
from everview.plan.relations import Relation, Way
from tests.plan.relation_texts import call, expr, grouped, joined, of, scan, select, where

FIELDS = (
    Field("o.id", BIGINT),
    Field("o.amount", decimal(10, 2)),
    Field("o.placed", DATE),
    Field("o.status", VARCHAR),
    Field("o.weight", DOUBLE),
)


@pytest.mark.parametrize(
    ("sql", "template", "constants"),
    [
        ("\"o.amount\" > 10.5 AND \"o.status\" = 'it''s'", '"o.amount" > $1 AND "o.status" = $2', ("10.5", "'it''s'")),
        ('"o.id" IN (1, 2)', '"o.id" IN ($1, $2)', ("1", "2")),
        ('"o.id" BETWEEN 5 AND -9', '"o.id" BETWEEN $1 AND -$2', ("5", "9")),
        ("\"o.placed\" >= '1995-01-01'", '"o.placed" >= $1', ("'1995-01-01'",)),
        ("\"o.placed\" < CAST('1995-01-01' AS DATE)", '"o.placed" < CAST($1 AS DATE)', ("'1995-01-01'",)),
        ("\"o.status\" LIKE '%a%'", '"o.status" LIKE $1', ("'%a%'",)),
        ('"o.id" % 3 = 1', '"o.id" % 3 = $1', ("1",)),
    ],
)
def test_what_a_condition_compares_with_is_a_parameter(sql: str, template: str, constants: tuple[str, ...]) -> None:
    found = template_of(sql, FIELDS)
    assert (found.sql, found.constants) == (template, constants)


@pytest.mark.parametrize(
    "sql",
    [
        "DATE_TRUNC('month', \"o.placed\") = '1995-01-01'",
        "\"o.placed\" < CAST('1995-01-01' AS DATE) + INTERVAL '1' YEAR",
        '"o.weight" > 1e5',
        '"o.id" = 12345678901234567890',
        "\"o.status\" = '#slot'",
        '"o.id" > "o.weight"',
        "1 = 1",
        "\"o.id\" IN ('one', 'two')",
        "\"o.placed\" > '1995-13-01'",
        "\"o.placed\" = CAST('never' AS DATE)",
    ],
)
def test_other_literals_stay(sql: str) -> None:
    assert template_of(sql, FIELDS).sql == sql


@given(st.lists(st.integers(0, 10**18 - 1) | st.decimals(0, 10**8, places=3).map(str), min_size=1).map(tuple))
def test_the_type_of_a_number_holds_all_constants(constants: Sequence[object]) -> None:
    kind = parameter_type("NUMBER", [str(one) for one in constants])
    decimals = any("." in str(one) for one in constants)
    assert (kind.scale == 3) if decimals else kind in (INTEGER, BIGINT)
    whole = max(len(str(one).partition(".")[0]) for one in constants)
    assert not decimals or kind.precision - kind.scale >= whole


def selection(number: int, column: str = "amount") -> Relation:
    orders = scan("orders")
    return select(where(orders, f'"orders.{column}" > {number}'), id="orders.id", amount="orders.amount")


def test_selections_that_differ_in_a_constant_are_one_family() -> None:
    views = [ViewInput(f"v{number:04}", selection(number)) for number in range(1000)]
    plan = plan_group(views)
    (family,) = plan.families
    assert family.title == "family of 1000 selections on orders"
    assert family.views == tuple(view.name for view in views)
    assert [step.operator.name for step in plan.steps] == ["delta", "filter-project", "view"]
    condition = plan.steps[1]
    assert condition.title == "orders.amount > $1"
    assert condition.constants and condition.constants.types == (INTEGER,)
    assert sorted(int(value) for (value,) in condition.constants.members) == list(range(1000))
    assert plan.view("v0007").constants == ("7",)
    assert len({plan.view_fingerprint(view.name) for view in views}) == 1000


def test_a_view_alone_shows_its_constant() -> None:
    plan = plan_group([ViewInput("v", selection(7))])
    assert plan.families == () and plan.steps[1].title == "orders.amount > 7"


def test_two_views_that_mean_the_same_are_no_family() -> None:
    plan = plan_group([ViewInput("x", selection(7)), ViewInput("y", selection(7))])
    assert plan.families == ()
    assert plan.view_fingerprint("x") == plan.view_fingerprint("y")


def test_a_member_of_a_family_of_joins_has_the_constants_of_both_sides() -> None:
    def of_two(one: int, other: int) -> ViewInput:
        a, b = where(scan("a"), f'"a.c2" > {one}'), where(scan("b"), f'"b.d" < {other}')
        return ViewInput(f"v{one}{other}", where(joined(a, b, {"a.c1": "b.c1"}), f'"a.k" <> {one + other}'))

    plan = plan_group([of_two(1, 2), of_two(1, 3), of_two(4, 2)])
    members = {step.title: step.constants.members for step in plan.steps if step.constants}
    assert members["a.c2 > $1"] == (("1",), ("4",))
    assert members["b.d < $1"] == (("2",), ("3",))
    assert members["a.k <> $3"] == (("1", "2", "3"), ("1", "3", "4"), ("4", "2", "6"))
    assert len(plan.families) == 1


def assorted() -> list[ViewInput]:
    a, b, orders = scan("a"), scan("b"), scan("orders")
    large = where(orders, '"orders.amount" > 3')
    return [
        ViewInput("s1", selection(1)),
        ViewInput("s2", selection(2)),
        ViewInput("sum", grouped(a, ["a.c1"], call("s", "sum", of(a, "a.c2")))),
        ViewInput("least", grouped(a, ["a.c1"], call("m", "min", of(a, "a.c2"), Way.EXTREME))),
        ViewInput("all", grouped(a, ["a.c1"], call("l", "list", of(a, "a.k"), Way.GENERAL))),
        ViewInput("join", joined(a, b, {"a.c1": "b.c1"})),
        ViewInput("large", grouped(large, ["orders.customer"], call("n", "count"))),
        ViewInput("twice", select(orders, id="orders.id", x=expr('"orders.amount" * 2'))),
    ]


def fingerprints(plan: MaintenancePlan, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {name: (plan.view_fingerprint(name), *(step.fingerprint for step in plan.steps_of(name))) for name in names}


@given(st.permutations(assorted()), st.integers(1, 7))
def test_fingerprints_stay_when_views_come_and_go(views: list[ViewInput], kept: int) -> None:
    some = [view.name for view in views[:kept]]
    whole, part = plan_group(views), plan_group(views[:kept])
    assert {n: set(f) for n, f in fingerprints(whole, some).items()} == {
        n: set(f) for n, f in fingerprints(part, some).items()
    }
    assert difference(whole, part).built == ()
    assert difference(part, whole).dropped == ()
    assert plan_group(sorted(views, key=lambda view: view.name)) == whole


def test_fingerprints_are_the_same_in_every_version() -> None:
    plan = plan_group(assorted())
    assert {name: plan.view_fingerprint(name) for name in ("s1", "join", "least")} == {
        "s1": "471e8d74e0307655fbc4533e65645418",
        "join": "2624d5f1663176d94f24d7806e5009e6",
        "least": "7877224fafe1ec6ad56b32040e89da02",
    }


def test_a_state_that_gains_a_column_is_widened() -> None:
    views = {view.name: view for view in assorted()}
    more = ViewInput("more", grouped(scan("a"), ["a.c1"], call("s", "sum", of(scan("a"), "a.k"))))
    old, new = plan_group([views["sum"]]), plan_group([views["sum"], more])
    found = difference(old, new)
    assert list(found.widened.values()) == [("a.count(k)", "a.sum(k)")]
    assert found.built == (new.view_fingerprint("more"),)
    assert found.kept == (new.view_fingerprint("sum"),)
    assert difference(new, old).dropped == found.built


def test_a_new_member_builds_its_own_state_only() -> None:
    old = plan_group([ViewInput("s1", selection(1))])
    new = plan_group([ViewInput("s1", selection(1)), ViewInput("s2", selection(2))])
    assert difference(old, new).built == (new.view_fingerprint("s2"),)
    assert difference(old, new).kept == (old.view_fingerprint("s1"),)
