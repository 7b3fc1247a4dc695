"""Plans of a group one after another: parts of a plan, and plans that keep what others held."""

from __future__ import annotations

import itertools

import pytest

from everview.plan.compile import compile_text, plan_views
from everview.plan.maintenance import MaintenancePlan, continued, restricted
from everview.sql.namespace import Names
from tests.plan.shop import relations

QUERIES = {
    "counts": "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
    "sums": "SELECT customer, sum(amount) AS total, max(price) AS high FROM orders GROUP BY customer",
    "over_5": "SELECT id, amount FROM orders WHERE amount > 5",
    "over_9": "SELECT id, amount FROM orders WHERE amount > 9",
    "wide": "SELECT id, amount, customer FROM orders WHERE amount > 7",
    "named": "SELECT o.id, c.name FROM orders AS o JOIN customers AS c ON o.customer = c.id",
    "placed": "SELECT o.id, c.city, o.amount FROM orders AS o JOIN customers AS c ON o.customer = c.id",
    "above": "SELECT n, count(*) AS times FROM counts GROUP BY n",
}
NAMES = list(QUERIES)


def planned(*names: str) -> MaintenancePlan:
    """The plan of these views; those they read come before them."""
    known = list(relations())
    found = []
    for name in NAMES:
        if name in names or (name == "counts" and "above" in names):
            compiled = compile_text(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}", Names(known))
            known.append(compiled.named)
            found.append(compiled)
    return plan_views(found)


def held(plan: MaintenancePlan) -> dict[str, set[str]]:
    """The columns of every state, by fingerprint."""
    return {state.fingerprint: {field.name for field in state.fields} for step in plan.steps for state in step.states}


def members(plan: MaintenancePlan) -> dict[str, set[tuple[str, ...]]]:
    return {step.fingerprint: set(step.constants.members) for step in plan.steps if step.constants}


WHOLE = planned(*NAMES)


@pytest.mark.parametrize("names", list(itertools.combinations(NAMES, 2)), ids=" ".join)
def test_a_part_of_a_plan_has_the_steps_and_members_of_its_views(names: tuple[str, str]) -> None:
    alone, part = planned(*names), restricted(WHOLE, names)
    assert [view.name for view in part.views] == sorted(names)
    assert part.by_fingerprint.keys() == {step.fingerprint for step in restricted(alone, names).steps}
    assert members(part) == members(restricted(alone, names))
    for name in names:
        assert part.view_fingerprint(name) == WHOLE.view_fingerprint(name) == alone.view_fingerprint(name)
    wider, narrower = held(part), held(restricted(alone, names))
    assert all(narrower[one] <= wider[one] for one in narrower)
    assert restricted(part, names) == part
    assert MaintenancePlan.from_json(part.to_json()) == part


@pytest.mark.parametrize("gone", NAMES)
def test_a_plan_that_goes_on_keeps_every_column(gone: str) -> None:
    left = [name for name in NAMES if name != gone and not (gone == "counts" and name == "above")]
    again = continued(planned(*left), WHOLE)
    before, after = held(WHOLE), held(again)
    assert after.keys() <= before.keys()
    assert all(after[one] == before[one] for one in after), "nothing that is stored changes its form"
    assert continued(again, WHOLE) == again
    assert continued(WHOLE, again) == WHOLE


def test_members_that_are_gone_do_not_come_back() -> None:
    before = planned("over_5", "over_9")
    after = continued(planned("over_5"), before)
    (constants,) = {step.constants for step in after.steps if step.constants}
    assert constants.members == (("5",),)


def test_plans_can_go_on_from_any_order_of_views() -> None:
    for order in (NAMES, NAMES[::-1], NAMES[3:] + NAMES[:3]):
        plan = planned(order[0])
        for number in range(2, len(order) + 1):
            plan = continued(planned(*order[:number]), plan)
        assert held(plan) == held(WHOLE)
        assert members(plan) == members(WHOLE)


def test_the_part_of_one_member_has_its_constants_only() -> None:
    part = restricted(WHOLE, ["over_9"])
    assert set().union(*members(part).values()) == {("9",)}
    assert not part.families
