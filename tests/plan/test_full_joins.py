"""Rows without a match on either side of a full join are distinguished, though their keys are null."""

from __future__ import annotations

import pytest

from everview.errors import DefinitionError
from everview.plan.maintenance import ViewInput, plan_group
from everview.plan.relations import Join, JoinKind, full_join
from everview.plan.rules import rewrite
from tests.plan.evaluate import evaluated
from tests.plan.evaluate_plan import Evaluation
from tests.plan.rule_cases import a, b, count_by, passing
from tests.plan.shop import built, filled

TEXTS = (
    "select o.customer, o.n, v.customer as c, v.m from (select customer, count(*) as n from orders group by customer) o"
    " full join (select customer, count(*) as m from visits group by customer) v on o.customer = v.customer",
    "select o.n, v.m from (select count(*) as n from orders) o full join (select count(*) as m from visits) v"
    " on o.n = v.m + 1000",
    "select distinct o.customer, v.page from (select distinct customer from orders) o full join (select distinct"
    " page from visits) v on o.customer = length(v.page) full join (select distinct city from customers) c on"
    " c.city = v.page",
    "select o.customer, v.customer as c from (select distinct customer from orders) o full join (select distinct"
    " customer from visits) v on o.customer = v.customer where o.customer > 1 or v.customer is null",
    "select o.n, c.id from (select max(amount) as n from orders) o full join customers c on o.n > c.since",
    "select o.n, c.city from (select max(amount) as n from orders) o left join (select city, count(*) as k from"
    " customers group by city) c on o.n < c.k",
    "select o.n, c.city from (select max(amount) as n from orders) o right join (select city, count(*) as k from"
    " customers group by city) c on o.n < c.k",
)


@pytest.mark.parametrize("text", TEXTS)
def test_outer_joins_of_keys_that_may_be_null(text: str) -> None:
    relation = built(text).relation
    after = rewrite(relation)
    plan = plan_group([ViewInput("v", after)])
    for seed in range(6):
        connection = filled(seed)
        expected = sorted(map(repr, connection.execute(text).fetchall()))
        assert sorted(map(repr, evaluated(connection, relation))) == expected
        assert sorted(map(repr, evaluated(connection, after))) == expected
        assert sorted(map(repr, Evaluation(plan, connection).view("v"))) == expected


def test_a_marker_is_there_only_where_both_keys_may_be_null() -> None:
    groups = count_by(a, "a.x")
    assert full_join(groups, b, (), None, "side").key == ("by.a.x", "b.id")
    others = passing(count_by(b, "b.y"), "by.b.y")
    marked = full_join(groups, others, (), None, "side")
    assert marked.key == ("by.a.x", "by.b.y", "side")
    assert marked.field("side").hidden
    with pytest.raises(DefinitionError, match="full join"):
        Join(JoinKind.FULL, groups, others, ())
